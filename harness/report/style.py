"""The look of report.html: one column, readable at 420 and at 1280 pixels, in light, in dark and in print; statuses are
told by sign, word and colour."""

CSS = """
:root { color-scheme:light dark; --pass:#00795a; --fail:#b84400; --unknown:#6b5900; --line:#e2e5ea; --soft:#5f6773;
  --ink:#111827; --text:#374151; --card:#ffffff; --page:#f6f7f9; --onchip:#ffffff; }
@media screen and (prefers-color-scheme:dark) { :root { --pass:#2fbf95; --fail:#ff8f57; --unknown:#e0c04a;
  --line:#333a45; --soft:#9aa4b2; --ink:#e8eaee; --text:#c6ccd6; --card:#1b1f26; --page:#12151a; --onchip:#12151a; } }
* { box-sizing:border-box; }
html { scroll-padding-top:48px; }
body { margin:0; background:var(--page); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
main { max-width:1180px; margin:0 auto; padding:20px 24px 48px; }
h1 { font-size:22px; line-height:1.25; margin:0 0 10px; overflow-wrap:anywhere; }
h2 { font-size:18px; margin:34px 0 6px; }
h3 { font-size:15px; margin:18px 0 8px; }
p { margin:0 0 8px; }
code { font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; overflow-wrap:anywhere; }
nav { position:sticky; top:0; z-index:5; display:flex; gap:4px 16px; overflow-x:auto; background:var(--page);
  border-bottom:1px solid var(--line); padding:10px 2px; margin-top:10px; }
nav a { color:var(--text); font-size:14px; text-decoration:none; white-space:nowrap; }
nav a:hover, nav a:focus { color:var(--ink); text-decoration:underline; }
.lead { color:var(--text); max-width:80ch; overflow-wrap:anywhere; }
.banner { background:var(--card); border:1px solid var(--line); border-left:8px solid var(--soft); border-radius:8px;
  padding:16px 18px; }
.banner.pass { border-left-color:var(--pass); }
.banner.fail { border-left-color:var(--fail); }
.banner.unknown { border-left-color:var(--unknown); }
.verdict { font-size:16px; overflow-wrap:anywhere; }
.root { font-weight:600; overflow-wrap:anywhere; }
h3.cause { margin:1.2em 0 .3em; font-size:1em; overflow-wrap:anywhere; }
.why { font-size:14px; margin:0 0 6px; }
.why > div { display:grid; grid-template-columns:150px 1fr; gap:2px 14px; padding:2px 0; }
.early { color:var(--fail); overflow-wrap:anywhere; }
.chip { display:inline-block; min-width:92px; text-align:center; padding:2px 10px; border-radius:999px;
  color:var(--onchip); font:600 13px/1.5 system-ui,sans-serif; white-space:nowrap; }
.chip.pass { background:var(--pass); }
.chip.fail { background:var(--fail); }
.chip.unknown { background:var(--unknown); }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(190px,1fr)); gap:8px; margin:14px 0; }
.tile { border:1px solid var(--line); border-radius:8px; padding:8px 12px; display:flex; flex-direction:column; }
.tile b { font-size:20px; line-height:1.3; font-variant-numeric:tabular-nums; }
.tile span { font-size:13px; }
.tile small { color:var(--soft); font-size:12px; }
dl { margin:0; }
dt { color:var(--soft); font-size:12px; }
dd { margin:0; overflow-wrap:anywhere; }
.facts { display:grid; grid-template-columns:repeat(auto-fill,minmax(200px,1fr)); gap:8px 18px; margin-top:12px; }
.story { background:var(--card); border:1px solid var(--line); border-left:4px solid var(--unknown); border-radius:8px;
  padding:10px 14px; overflow-wrap:anywhere; }
.story.fail { border-left-color:var(--fail); }
.finding { display:grid; grid-template-columns:290px 1fr; gap:4px 16px; background:var(--card);
  border:1px solid var(--line); border-radius:8px; padding:12px 14px; margin:0 0 8px; }
.finding > div { min-width:0; }
.finding h3 { margin:0; display:flex; gap:8px; align-items:baseline; flex-wrap:wrap; font-weight:600; }
.finding p { overflow-wrap:anywhere; }
.finding.fail { border-color:var(--fail); }
.small { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr)); gap:8px; }
.small .finding { grid-template-columns:1fr; padding:8px 14px; margin:0; align-content:start; }
.because { color:var(--unknown); }
details summary { color:var(--soft); cursor:pointer; font-size:13px; }
.numbers { display:grid; grid-template-columns:repeat(auto-fill,minmax(190px,1fr)); gap:4px 14px; margin:8px 0; }
.evidence, .notes { margin:6px 0 0; padding-left:18px; font-size:13px; color:var(--text); overflow-wrap:anywhere; }
.plot { background:var(--card); border:1px solid var(--line); border-radius:8px; overflow:hidden; }
#timeline.plot { min-height:1100px; }
.scroll { overflow-x:auto; background:var(--card); border:1px solid var(--line); border-radius:8px; }
table { border-collapse:collapse; width:100%; font-size:13px; }
th, td { text-align:left; padding:6px 10px; border-bottom:1px solid var(--line); vertical-align:top; }
td { white-space:nowrap; font-variant-numeric:tabular-nums; }
td.long { white-space:normal; min-width:200px; overflow-wrap:anywhere; }
tr:last-child td { border-bottom:0; }
th { font-weight:600; color:var(--soft); white-space:normal; min-width:64px; }
th button { all:unset; cursor:pointer; }
th button:focus-visible { outline:2px solid currentColor; }
th[aria-sort=ascending] button::after { content:" \\2191"; }
th[aria-sort=descending] button::after { content:" \\2193"; }
td.none[title], td.fail[title] { text-decoration:underline dotted var(--soft); text-underline-offset:3px; cursor:help; }
td.fail { color:var(--fail); font-weight:600; }
td.none { color:var(--soft); }
#filters { display:flex; flex-wrap:wrap; gap:8px 14px; align-items:center; margin:8px 0; font-size:13px; }
#filters[hidden] { display:none; }
#filters select, #filters input { font:inherit; padding:3px 6px; background:var(--card); color:var(--ink);
  border:1px solid var(--line); border-radius:6px; max-width:180px; }
#matches { color:var(--soft); }
footer { margin-top:36px; border-top:1px solid var(--line); font-size:13px; color:var(--text); }
.words > div { display:grid; grid-template-columns:150px 1fr; gap:2px 14px; padding:3px 0; }
@media (max-width:640px) {
  main { padding:12px 12px 32px; }
  .finding { grid-template-columns:1fr; }
  .facts, .tiles { grid-template-columns:1fr 1fr; }
  .words > div, .why > div { grid-template-columns:1fr; }
}
@media print {
  body { background:#fff; font-size:12px; }
  main { max-width:none; padding:0; }
  nav, #filters, details:not([open]) > summary { display:none; }
  .finding, .tile, tr { break-inside:avoid; }
  h2 { break-after:avoid; }
  td, th { white-space:normal; overflow-wrap:anywhere; padding:3px 5px; font-size:10px; min-width:0; }
  td:first-child, th:first-child { min-width:64px; }
  .scroll { overflow:visible; }
}
"""
