// Of all addresses on the reports' origin, those that lead to one: a public one always, a private one's copy until the
// moment that its name tells. CloudFront runs this before it looks anywhere else.
const REPORT = /^\/(?:public\/|shown\/([0-9]{1,12})-)[0-9A-Za-z]{22}\.html$/;
const HEADERS = __HEADERS__;

function handler(event) {
  const found = REPORT.exec(event.request.uri);
  if (!found) return refuse(404, "Not Found", "Here are reports to look at, and nothing else.\n");
  if (found[1] !== undefined && Date.now() >= Number(found[1]) * 1000) {
    return refuse(403, "Forbidden", "This address is over: load the report's own page again.\n");
  }
  return event.request;
}

function refuse(statusCode, statusDescription, data) {
  return { statusCode, statusDescription, headers: HEADERS, body: { encoding: "text", data } };
}
