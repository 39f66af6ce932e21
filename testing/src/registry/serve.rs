//! Answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use futures_util::stream;
use serde_json::{Value, json};

use super::state::digest;
use super::{Action, Logged, ReferrersApi, Shared, SubjectHeader};

/// The largest body that is taken.
const MAX_BODY: usize = 128 << 20;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: Vec<u8>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body)).expect("valid parts")
}

pub(super) fn problem(status: u16, code: &str) -> Response<Body> {
    let body = json!({"errors": [{"code": code, "message": code.to_lowercase()}]}).to_string();
    answer(status, &[("content-type", "application/json")], body.into_bytes())
}

struct Call<'a> {
    method: &'a Method,
    path: &'a str,
    query: Vec<(String, String)>,
    headers: &'a HeaderMap,
    body: Bytes,
}

impl Call<'_> {
    /// The host as the caller names it, which absolute locations repeat.
    fn host(&self) -> &str {
        self.headers.get("host").and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

async fn handle(Extract(shared): Extract<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let action = shared.state(|state| {
        state.log.push(Logged {
            method: parts.method.to_string(),
            path: parts.uri.to_string(),
            headers: parts
                .headers
                .iter()
                .map(|(name, value)| {
                    (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                })
                .collect(),
            length: body.len(),
        });
        state.faults.iter_mut().find_map(|fault| {
            fault.hits(parts.method.as_str(), &path).then(|| fault.action.clone())
        })
    });
    let call = Call {
        method: &parts.method,
        path: &path,
        query: fields(parts.uri.query().unwrap_or_default()),
        headers: &parts.headers,
        body,
    };
    match action {
        None => shared.answer(&call),
        Some(action) => shared.misbehave(action, &call).await,
    }
}

/// Reads `a=b&c=d` with percent signs and plus signs.
fn fields(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Shared {
    async fn misbehave(&self, action: Action, call: &Call<'_>) -> Response<Body> {
        let typed = |body: Body| {
            let mut response = Response::new(body);
            let value = HeaderValue::from_static("application/vnd.oci.image.manifest.v1+json");
            response.headers_mut().insert("content-type", value);
            response
        };
        match action {
            Action::Answer { status, headers, body } => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                answer(status, &headers, body)
            }
            Action::Headers(headers) => {
                let mut response = self.answer(call);
                for (name, value) in headers {
                    let name: HeaderName = name.parse().expect("a header's name");
                    if value.is_empty() {
                        response.headers_mut().remove(&name);
                    } else {
                        let value = value.parse().expect("a header's value");
                        response.headers_mut().insert(name, value);
                    }
                }
                response
            }
            Action::Late(pause) => {
                tokio::time::sleep(pause).await;
                self.answer(call)
            }
            Action::Hold => {
                self.state(|state| state.held += 1);
                let permit = self.held.acquire().await;
                if let Ok(permit) = permit {
                    permit.forget();
                }
                self.state(|state| state.held -= 1);
                self.answer(call)
            }
            Action::Endless => typed(Body::from_stream(stream::repeat_with(|| {
                Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 16 << 10]))
            }))),
            Action::Drip => typed(Body::from_stream(stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ()))
            }))),
            Action::Cut => typed(Body::from_stream(stream::unfold(0, |step| async move {
                let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                match step {
                    0 => Some((Ok(Bytes::from_static(b"{\"schemaVersion\":2,")), 1)),
                    1 => {
                        // The first part is sent before the connection goes.
                        tokio::task::yield_now().await;
                        Some((Err(broken()), 2))
                    }
                    _ => None,
                }
            }))),
            Action::Announce(length) => {
                // The end never comes: a server that knows it to be too early sends nothing.
                let mut response = typed(Body::from_stream(stream::unfold(0, |step| async move {
                    if step > 0 {
                        std::future::pending::<()>().await;
                    }
                    Some((Ok::<_, std::io::Error>(Bytes::from_static(b"{}")), 1))
                })));
                response.headers_mut().insert("content-length", HeaderValue::from(length));
                response
            }
        }
    }

    fn answer(&self, call: &Call<'_>) -> Response<Body> {
        if call.path == "/token" {
            let form = fields(&String::from_utf8_lossy(&call.body));
            return self.give_token(call.headers, &call.query, &form);
        }
        let Some(rest) = call.path.strip_prefix("/v2/") else {
            return problem(404, "UNKNOWN");
        };
        for (kind, serve) in [
            ("/blobs/uploads", Self::upload as fn(&Self, &Call<'_>, &str, &str) -> Response<Body>),
            ("/blobs", Self::blob),
            ("/manifests", Self::manifest),
            ("/referrers", Self::referrers),
        ] {
            let Some((repository, name)) = rest.rsplit_once(kind) else { continue };
            let name = name.strip_prefix('/').unwrap_or(name);
            let write = !matches!(*call.method, Method::GET | Method::HEAD);
            let action = if write { "push" } else { "pull" };
            if let Some(refused) = self.refuse(call.headers, repository, action) {
                return refused;
            }
            return serve(self, call, repository, name);
        }
        if let Some(refused) = self.refuse(call.headers, "", "pull") {
            return refused;
        }
        answer(200, &[("content-type", "application/json")], b"{}".to_vec())
    }

    fn blob(&self, call: &Call<'_>, repository: &str, name: &str) -> Response<Body> {
        if !matches!(*call.method, Method::GET | Method::HEAD) {
            return problem(405, "UNSUPPORTED");
        }
        match self.state(|state| state.blob(repository, name).map(<[u8]>::to_vec)) {
            None => problem(404, "BLOB_UNKNOWN"),
            Some(bytes) => {
                let headers =
                    [("content-type", "application/octet-stream"), ("docker-content-digest", name)];
                answer(200, &headers, bytes)
            }
        }
    }

    fn upload(&self, call: &Call<'_>, repository: &str, name: &str) -> Response<Body> {
        let base = format!("{}://{}", self.scheme(), call.host());
        let location = |id: &str| format!("{base}/v2/{repository}/blobs/uploads/{id}?_state=test");
        match *call.method {
            Method::POST if name.is_empty() => {
                let id = self.state(|state| {
                    state.counter += 1;
                    let id = format!("upload-{}", state.counter);
                    state.uploads.insert(id.clone(), Vec::new());
                    id
                });
                answer(202, &[("location", &location(&id))], Vec::new())
            }
            Method::PATCH => {
                let known = self.state(|state| {
                    state.uploads.get_mut(name).map(|bytes| bytes.extend_from_slice(&call.body))
                });
                match known {
                    None => problem(404, "BLOB_UPLOAD_UNKNOWN"),
                    Some(()) => answer(202, &[("location", &location(name))], Vec::new()),
                }
            }
            Method::PUT => {
                let wanted = call.query("digest").unwrap_or_default();
                let Some(mut bytes) = self.state(|state| state.uploads.remove(name)) else {
                    return problem(404, "BLOB_UPLOAD_UNKNOWN");
                };
                bytes.extend_from_slice(&call.body);
                if digest(&bytes) != wanted {
                    return problem(400, "DIGEST_INVALID");
                }
                self.state(|state| state.put_blob(repository, &bytes));
                let at = format!("{base}/v2/{repository}/blobs/{wanted}");
                answer(201, &[("location", &at), ("docker-content-digest", wanted)], Vec::new())
            }
            _ => problem(405, "UNSUPPORTED"),
        }
    }

    fn manifest(&self, call: &Call<'_>, repository: &str, name: &str) -> Response<Body> {
        match *call.method {
            Method::GET | Method::HEAD => {
                let found = self.state(|state| {
                    let stored = state.manifest(repository, name)?;
                    Some((stored.media_type.clone(), stored.bytes.clone()))
                });
                let accepted = |media_type: &str| {
                    call.headers.get_all("accept").iter().any(|value| {
                        value
                            .to_str()
                            .is_ok_and(|text| text.split(',').any(|own| own.trim() == media_type))
                    })
                };
                match found {
                    Some((media_type, bytes)) if accepted(&media_type) => {
                        let digest = digest(&bytes);
                        let headers = [
                            ("content-type", media_type.as_str()),
                            ("docker-content-digest", digest.as_str()),
                        ];
                        answer(200, &headers, bytes)
                    }
                    _ => problem(404, "MANIFEST_UNKNOWN"),
                }
            }
            Method::PUT => {
                let checked = self.state(|state| state.check(repository, name, &call.body));
                let subject = match checked {
                    Err(code) => return problem(400, code),
                    Ok(subject) => subject,
                };
                let media_type = call
                    .headers
                    .get("content-type")
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default();
                let digest = self
                    .state(|state| state.put_manifest(repository, name, media_type, &call.body));
                let base = format!("{}://{}", self.scheme(), call.host());
                let at = format!("{base}/v2/{repository}/manifests/{digest}");
                let mut headers =
                    vec![("location", at.as_str()), ("docker-content-digest", digest.as_str())];
                if let (SubjectHeader::Sent, Some(subject)) = (self.options.subject, &subject) {
                    headers.push(("oci-subject", subject));
                }
                answer(201, &headers, Vec::new())
            }
            _ => problem(405, "UNSUPPORTED"),
        }
    }

    fn referrers(&self, call: &Call<'_>, repository: &str, name: &str) -> Response<Body> {
        if self.options.referrers == ReferrersApi::Missing || *call.method != Method::GET {
            let headers = [("content-type", "text/plain; charset=utf-8")];
            return answer(404, &headers, b"404 page not found\n".to_vec());
        }
        let mut all = self.state(|state| state.referrers(repository, name));
        let filter = call.query("artifactType");
        if let Some(wanted) = filter {
            all.retain(|descriptor| descriptor["artifactType"] == wanted);
        }
        let from = call.query("last").and_then(|text| text.parse().ok()).unwrap_or(0_usize);
        let size = self.options.page_size.max(1);
        let page: Vec<Value> = all.iter().skip(from).take(size).cloned().collect();
        let body = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": page}).to_string();
        let mut headers = vec![("content-type", INDEX)];
        if filter.is_some() {
            headers.push(("oci-filters-applied", "artifactType"));
        }
        let next = from.saturating_add(size);
        let kept = filter.map(|wanted| format!("artifactType={wanted}&")).unwrap_or_default();
        let link = format!("</v2/{repository}/referrers/{name}?{kept}last={next}>; rel=\"next\"");
        if next < all.len() {
            headers.push(("link", &link));
        }
        answer(200, &headers, body.into_bytes())
    }
}
