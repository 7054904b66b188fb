const movie = $("movie");
let state = null; // the newest
let heard = 0; // when it came, in ms
let playing = { sha256: "", rate: 60, frames: 0, splits: [] }; // what the movie shows
let ram = null;
let cells = []; // of the table of variables

// ---- the state ----------------------------------------------------------------------------------------------

function show(next) {
  state = next;
  heard = Date.now() - 1000 * next.heard_s;
  const { run, time, search, counts, journal } = next.snapshot;
  document.title = `${run.title} live`;
  $("title").textContent = run.title;
  $("start").textContent = clock(sinceStart(time, time.frames), run.console_rate);
  $("power").textContent = clock(time.frames, run.console_rate);
  $("frames").textContent = count(time.frames);
  showSplits();
  $("doing").textContent = search.doing === "idle" ? "at rest" : search.doing;
  $("state").textContent = search.state;
  $("goal").textContent = search.goal;
  $("budget").value = search.budget ? Math.min(1, search.frames / search.budget) : 0;
  $("spent").textContent = `${count(search.frames)} of ${count(search.budget)} frames emulated`;
  tiles("search", [
    ["frames/s", count(Math.round(search.frames_per_s))],
    ["best, frames", search.best === null ? "none yet" : count(search.best)],
    ["cells", count(search.cells)],
    ["dropped", count(search.dropped)],
    ["deaths", count(search.deaths)],
    ["workers", count(search.workers)],
    ["attempt", count(search.attempt + 1)],
  ]);
  tiles("counts", [
    ["levels beaten", count(counts.levels_beaten)],
    ["pieces", count(counts.pieces)],
    ["found", count(counts.found)],
    ["improved", count(counts.improved)],
    ["checkpoints", count(counts.checkpoints)],
    ["stuck", count(counts.stuck)],
    ["frames shaved", count(counts.frames_shaved)],
  ]);
  showJournal(journal, run.console_rate);
  picture("frame", "frame.png");
  picture("mosaic", "mosaic.png");
  showFilms();
  showBadge();
}

function tiles(id, pairs) {
  $(id).replaceChildren(...pairs.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value))));
}

function showBadge() {
  const silent = state ? Math.round((Date.now() - heard) / 1000) : 0;
  const idle = state?.snapshot.search.doing === "idle";
  const alive = Boolean(state) && silent < 15 && !idle;
  $("badge").classList.toggle("live", alive);
  const text = !state ? "waiting for a run" : alive ? "live" : idle ? "at rest" : `silent for ${ago(silent)}`;
  if ($("badge").textContent !== text) $("badge").textContent = text;
}

function ago(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function showSplits() {
  const { run, time, splits, search } = state.snapshot;
  const rows = splits.map((split) => {
    const end = split.entered + split.frames;
    const gain = split.best_before === null ? 0 : split.best_before - split.frames;
    const button = make("button", "", make("span", "name", split.state), make("span", "hint", split.goal));
    button.type = "button";
    button.disabled = split.entered >= playing.frames;
    if (!button.disabled) button.title = `Go to frame ${count(split.entered)} of the movie`;
    button.addEventListener("click", () => seek(split.entered));
    const row = make(
      "tr",
      "",
      make("td", "", button),
      make("td", "num", count(split.frames)),
      make("td", "num good", gain > 0 ? `\u2212${count(gain)}` : ""),
      make("td", "num", end > (time.start_frame ?? 0) ? clock(sinceStart(time, end), run.console_rate) : ""),
    );
    row.dataset.entered = split.entered;
    return row;
  });
  if (search.doing !== "idle" && search.state && !splits.some((split) => split.state === search.state)) {
    const name = make("span", "name", search.state);
    const best = search.best === null ? "" : count(search.best);
    const row = make("tr", "open", make("td", "", make("button", "", name, make("span", "hint", search.goal))));
    row.querySelector("button").disabled = true;
    row.append(make("td", "num", best), make("td", ""), make("td", "num", "\u2026"));
    rows.push(row);
  }
  const focused = [...$("rows").querySelectorAll("button")].indexOf(document.activeElement);
  $("rows").replaceChildren(...rows);
  if (focused >= 0) $("rows").querySelectorAll("button")[focused]?.focus();
  markSplit(frameNow());
}

function showJournal(journal, rate) {
  const lines = [...journal].reverse().map((line) => {
    const moment = new Date(line.utc);
    const time = make("time", "", Number.isNaN(moment.getTime()) ? "" : moment.toLocaleTimeString("en-GB"));
    time.dateTime = line.utc;
    const where = [line.state, line.note].filter(Boolean).join(": ");
    return make("li", line.event.replace(" ", "-"), time, make("b", "", line.event), make("span", "", where));
  });
  $("journal").replaceChildren(...lines);
}

function picture(id, name) {
  const sha256 = state.files[name];
  const image = $(id);
  if (!sha256 || image.dataset.sha256 === sha256) return;
  image.dataset.sha256 = sha256;
  const next = new Image();
  next.onload = () => {
    if (image.dataset.sha256 !== sha256) return;
    image.src = next.src;
    image.hidden = false;
  };
  next.src = place(state.snapshot.run.id, name, sha256);
}

// ---- the movie, and RAM in step with it ------------------------------------------------------------------------

function showFilms() {
  const { snapshot, files } = state;
  const sha256 = files["movie.mp4"];
  const ready = sha256 && snapshot.movie?.sha256 === sha256;
  if (ready && playing.sha256 !== sha256) {
    const watched = !movie.paused && !movie.ended;
    $("newer").hidden = !watched;
    if (!watched) loadMovie();
  }
  if (ready && (!ram || ram.movie !== playing.sha256) && files["ram.json"]) loadRam(files["ram.json"]);
  const faster = files["comparison.mp4"];
  if (faster && $("comparison").dataset.sha256 !== faster) {
    $("comparison").dataset.sha256 = faster;
    $("comparison").autoplay = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    $("comparison").src = place(snapshot.run.id, "comparison.mp4", faster);
    $("faster-card").hidden = false;
  }
}

function loadMovie() {
  const { snapshot, files } = state;
  const { frames, sha256, verified } = snapshot.movie;
  playing = { sha256, frames, rate: snapshot.run.console_rate, splits: snapshot.splits };
  movie.src = place(snapshot.run.id, "movie.mp4", files["movie.mp4"]);
  $("verified").textContent = `${count(frames)} frames, ${verified ? "verified from power-on" : "not verified"}`;
  $("movie-card").hidden = false;
  $("newer").hidden = true;
  showSplits();
}

let loading = "";
async function loadRam(sha256) {
  if (loading === sha256) return;
  loading = sha256;
  const answer = await fetch(place(state.snapshot.run.id, "ram.json", sha256)).catch(() => null);
  if (!answer?.ok) return void (loading = "");
  ram = await answer.json();
  cells = ram.names.map(() => make("td", "num", ""));
  $("ram").replaceChildren(...ram.names.map((name, i) => make("tr", "", make("td", "", name), cells[i])));
  showRam(frameNow());
}

const frameNow = () => Math.floor(movie.currentTime * playing.rate + 0.01);

function seek(frame) {
  movie.currentTime = (frame + 0.5) / playing.rate; // the middle of a frame is no other, however it is rounded
  movie.scrollIntoView({ block: "nearest" });
}

function showRam(frame) {
  $("at").textContent = `frame ${count(Math.min(frame, Math.max(0, playing.frames - 1)))}`;
  markSplit(frame);
  if (!ram || ram.movie !== playing.sha256 || !ram.values.length) return;
  const values = ram.values[Math.min(ram.values.length - 1, Math.floor(frame / ram.every))];
  values.forEach((value, i) => {
    const text = String(value);
    cells[i].classList.toggle("changed", cells[i].textContent !== text && cells[i].textContent !== "");
    if (cells[i].textContent !== text) cells[i].textContent = text;
  });
}

function markSplit(frame) {
  let current = null;
  for (const row of $("rows").children) {
    row.classList.remove("playing");
    if (playing.sha256 && Number(row.dataset.entered) <= frame) current = row;
  }
  current?.classList.add("playing");
}

function everyFrame(_, shown) {
  showRam(Math.round(shown.mediaTime * playing.rate));
  movie.requestVideoFrameCallback(everyFrame);
}
if ("requestVideoFrameCallback" in movie) movie.requestVideoFrameCallback(everyFrame);
else movie.addEventListener("timeupdate", () => showRam(frameNow()));
movie.addEventListener("seeked", () => showRam(frameNow()));
for (const event of ["pause", "ended"]) movie.addEventListener(event, () => state && !$("newer").hidden && loadMovie());
$("newer").addEventListener("click", loadMovie);

// ---- around it -----------------------------------------------------------------------------------------------

document.addEventListener("runs", ({ detail: { runs, followed } }) => {
  if (!runs) return;
  $("pick").hidden = runs.length < 2;
  const options = runs.map((run) => new Option(`${run.title} ${run.id.slice(0, 6)}`, run.id, false, run.id === followed));
  if (document.activeElement !== $("runs")) $("runs").replaceChildren(...options);
});
$("runs").addEventListener("change", () => location.assign(`/?run=${encodeURIComponent($("runs").value)}`));

const root = document.documentElement;
function setTheme(name) {
  if (name) root.dataset.theme = name;
  const light = name === "light" || (!name && matchMedia("(prefers-color-scheme: light)").matches);
  $("theme").textContent = light ? "Dark" : "Light";
  $("theme").setAttribute("aria-label", light ? "Show dark colours" : "Show light colours");
  return light;
}
let light = setTheme(localStorage.getItem("theme"));
$("theme").addEventListener("click", () => {
  light = setTheme(light ? "dark" : "light");
  localStorage.setItem("theme", root.dataset.theme);
});

setInterval(showBadge, 1000);
follow(show, showBadge);
