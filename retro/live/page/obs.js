const MOST = 9; // splits that are shown, the last ones

function show({ snapshot: { run, time, splits, search } }) {
  $("title").textContent = run.title;
  const timed = splits.filter((split) => sinceStart(time, split.entered + split.frames) > 0);
  const rows = timed.map((split) => {
    const gain = split.best_before === null ? 0 : split.best_before - split.frames;
    const end = clock(sinceStart(time, split.entered + split.frames), run.console_rate);
    return make("tr", "", make("td", "", split.state), make("td", "", gain > 0 ? `\u2212${gain}` : ""), make("td", "", end));
  });
  const known = rows[timed.findIndex((split) => split.state === search.state)];
  if (search.doing !== "idle" && known) known.className = "open";
  if (search.doing !== "idle" && search.state && !splits.some((split) => split.state === search.state)) {
    rows.push(make("tr", "open", make("td", "", search.state), make("td", ""), make("td", "", "\u2026")));
  }
  $("rows").replaceChildren(...rows.slice(-MOST));
  $("clock").textContent = clock(sinceStart(time, time.frames), run.console_rate);
  const best = search.best === null ? "no way out yet" : `best ${count(search.best)} frames`;
  $("status").textContent =
    search.doing === "idle" ? "" : `${search.doing}, ${best}, ${count(Math.round(search.frames_per_s))} frames/s`;
}

document.documentElement.classList.toggle("solid", new URLSearchParams(location.search).has("solid"));
follow(show, () => {});
