"use strict";
// Everything that comes from a run is set as text, never as markup.

const $ = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en-US");

/** An element with a class and children, which are elements or texts. */
function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** Frames as "m:ss.ff", cut off to hundredths of a second. */
function clock(frames, rate) {
  const hundredths = Math.floor((frames * 100) / rate + 1e-6);
  const [minutes, rest] = [Math.floor(hundredths / 6000), hundredths % 6000];
  const seconds = String(Math.floor(rest / 100)).padStart(2, "0");
  return `${minutes}:${seconds}.${String(rest % 100).padStart(2, "0")}`;
}

/** Where a version of a file of a run lies. */
const place = (run, name, sha256) => `/api/runs/${run}/${name}/${sha256}`;

/** Frames since the first frame from which a run is timed: Start, or power-on while there is none. */
const sinceStart = (time, frames) => frames - (time.start_frame ?? 0);

/** All runs, that heard of last first; asks for the key again where it is not valid any more. */
async function listRuns() {
  const answer = await fetch("/api/runs");
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error(`the backend answers ${answer.status}`);
  return answer.json();
}

/** Follow the run that the address names, or that was heard of last; `show` gets every state of it. */
async function follow(show, lost) {
  let source = null;
  let followed = "";
  const asked = new URLSearchParams(location.search).get("run");
  const begin = (run) => {
    source?.close();
    followed = run;
    source = new EventSource(`/api/runs/${run}/events`);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.onerror = () => lost();
  };
  const look = async () => {
    try {
      const runs = await listRuns();
      const run = runs.find((known) => known.id === asked) ?? runs[0];
      // Another run that begins takes over, unless one was asked for.
      if (run && (run.id !== followed || source.readyState === EventSource.CLOSED)) begin(run.id);
      return runs;
    } catch {
      lost();
      return null;
    }
  };
  let runs = await look();
  document.dispatchEvent(new CustomEvent("runs", { detail: { runs, followed } }));
  setInterval(async () => {
    runs = await look();
    document.dispatchEvent(new CustomEvent("runs", { detail: { runs, followed } }));
  }, 5000);
}
