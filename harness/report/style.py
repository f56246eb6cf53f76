"""The look of report.html: one column, readable at 420 and at 1280 pixels, statuses told by sign and colour."""

CSS = """
:root { --pass:#00795a; --fail:#b84400; --unknown:#6b5900; --line:#e5e7eb; --soft:#6b7280; --ink:#111827; }
* { box-sizing:border-box; }
body { margin:0; background:#f8fafc; color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
main { max-width:1180px; margin:0 auto; padding:20px 24px 48px; }
h1 { font-size:22px; line-height:1.25; margin:0 0 10px; overflow-wrap:anywhere; }
h2 { font-size:18px; margin:34px 0 6px; }
h3 { font-size:15px; margin:18px 0 8px; }
p { margin:0 0 8px; }
code { font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; overflow-wrap:anywhere; }
.lead { color:#374151; max-width:80ch; }
.banner { background:#fff; border:1px solid var(--line); border-left:8px solid var(--soft); border-radius:8px;
  padding:16px 18px; }
.banner.pass { border-left-color:var(--pass); }
.banner.fail { border-left-color:var(--fail); }
.banner.unknown { border-left-color:var(--unknown); }
.verdict { font-size:16px; overflow-wrap:anywhere; }
.early { color:var(--fail); overflow-wrap:anywhere; }
.chip { display:inline-block; min-width:92px; text-align:center; padding:2px 10px; border-radius:999px; color:#fff;
  font:600 13px/1.5 system-ui,sans-serif; white-space:nowrap; }
.chip.pass { background:var(--pass); }
.chip.fail { background:var(--fail); }
.chip.unknown { background:var(--unknown); }
dl { margin:0; }
dt { color:var(--soft); font-size:12px; }
dd { margin:0; overflow-wrap:anywhere; }
.facts { display:grid; grid-template-columns:repeat(auto-fill,minmax(200px,1fr)); gap:8px 18px; margin-top:12px; }
.finding { display:grid; grid-template-columns:290px 1fr; gap:4px 16px; background:#fff; border:1px solid var(--line);
  border-radius:8px; padding:12px 14px; margin:0 0 8px; }
.finding > div { min-width:0; }
.finding h3 { margin:0; display:flex; gap:8px; align-items:baseline; flex-wrap:wrap; font-weight:600; }
.finding p { overflow-wrap:anywhere; }
.finding.fail { border-color:var(--fail); }
.small { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr)); gap:8px; }
.small .finding { grid-template-columns:1fr; padding:8px 14px; margin:0; align-content:start; }
.because { color:var(--unknown); }
details summary { color:var(--soft); cursor:pointer; font-size:13px; }
.numbers { display:grid; grid-template-columns:repeat(auto-fill,minmax(190px,1fr)); gap:4px 14px; margin:8px 0; }
.evidence, .notes { margin:6px 0 0; padding-left:18px; font-size:13px; color:#374151; overflow-wrap:anywhere; }
#timeline { background:#fff; border:1px solid var(--line); border-radius:8px; min-height:900px; }
.scroll { overflow-x:auto; background:#fff; border:1px solid var(--line); border-radius:8px; }
table { border-collapse:collapse; width:100%; font-size:13px; }
th, td { text-align:left; padding:6px 10px; border-bottom:1px solid var(--line); vertical-align:top; }
td { white-space:nowrap; }
td.long { white-space:normal; min-width:200px; }
tr:last-child td { border-bottom:0; }
th { font-weight:600; color:var(--soft); white-space:normal; min-width:64px; }
td.none[title], td.fail[title] { text-decoration:underline dotted var(--soft); text-underline-offset:3px; cursor:help; }
td.fail { color:var(--fail); font-weight:600; }
td.none { color:var(--soft); }
footer { margin-top:36px; border-top:1px solid var(--line); font-size:13px; color:#374151; }
.words > div { display:grid; grid-template-columns:150px 1fr; gap:2px 14px; padding:3px 0; }
@media (max-width:640px) {
  main { padding:12px 12px 32px; }
  .finding { grid-template-columns:1fr; }
  .facts { grid-template-columns:1fr 1fr; }
  .words > div { grid-template-columns:1fr; }
}
@media print { details > * { display:block; } .finding { break-inside:avoid; } }
"""

SCRIPT = """
(function () {
  var figure = JSON.parse(document.getElementById("figure").textContent);
  var place = document.getElementById("timeline");
  if (place.clientWidth < 560) {
    figure.layout.margin = {l: 38, r: 6, t: 52, b: 56};
    figure.layout.font.size = 10;
    figure.layout.xaxis.title.font.size = 10;
    figure.layout.annotations.forEach(function (a) { a.font.size = 10; });
  }
  Plotly.newPlot(place, figure.data, figure.layout,
    {responsive: true, displaylogo: false, displayModeBar: false, doubleClick: "reset"});
})();
"""
