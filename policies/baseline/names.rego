package ambit.baseline

# Whether a slash-separated name is one of the given ones or lies below one of them.
within_any(name, roots) if {
	some root in roots
	within(name, trim_right(root, "/"))
}

within(name, root) if name == root

within(name, root) if startswith(name, concat("", [root, "/"]))

# A list as messages print it.
quoted(names) := concat(", ", [sprintf("`%s`", [name]) | some name in names])

named_class(class, pattern) if class == pattern

named_class(class, pattern) if {
	endswith(pattern, ".*")
	startswith(class, trim_suffix(pattern, "*"))
}

# Whether a host grant gives rather than takes away. In brackets, since the loader's check for
# recursion takes a dotted `deny` in a function for a use of the rule.
gives(grant) if grant["deny"] == false
