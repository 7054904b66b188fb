"use strict";
// A key after "#" in the address is sent to no server and kept in no history: it is taken from there once.

async function enter(key) {
  const answer = await fetch("/enter", { method: "POST", body: new URLSearchParams({ key }) });
  if (answer.ok) location.reload();
  else document.getElementById("said").textContent = "This is not the key for looking.";
}

document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(document.getElementById("key").value);
});
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  enter(given);
}
