package ambit.baseline_test

test_literal_secret_is_denied if {
	found := data.ambit.baseline.deny with input as mail_with({"/grants/env/0/name": "API_KEY", "/grants/env/0/looks_secret": true})
	codes(found) == {"env-secret-literal"}
	some finding in found
	finding.path == "/spec/components/0/localResources/environment/config/LANGUAGE"
	contains(finding.msg, "`API_KEY`")
}

test_secret_by_reference_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/grants/env/0/looks_secret": true, "/grants/env/0/source": "secret"})
	found == set()
}

test_literal_that_is_no_secret_is_allowed if {
	found := data.ambit.baseline.deny with input as mail_with({"/grants/env/0/name": "API_URL", "/grants/env/0/looks_secret": false})
	found == set()
}
