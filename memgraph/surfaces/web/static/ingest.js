// Sends files from the page, and watches those that wait. Names and answers are set as text.
"use strict";

(() => {
  const AGAIN_MS = 700;
  const drop = document.getElementById("drop");
  const state = document.getElementById("state");

  async function watch(url, done) {
    for (;;) {
      await new Promise((after) => setTimeout(after, AGAIN_MS));
      const answer = await fetch(url, { credentials: "same-origin" });
      if (!answer.ok || answer.redirected) return;
      const told = await answer.json();
      if (told.status !== "waiting") {
        done(told.status);
        return;
      }
    }
  }

  if (state && state.dataset.status === "waiting") watch(state.dataset.url, () => location.reload());
  if (!drop) return;
  drop.hidden = false;

  const chosen = document.getElementById("files");
  const sent = document.getElementById("sent");

  // What an error page says.
  async function trouble(answer) {
    if (answer.redirected) return "the session has ended: sign in again";
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const told = page.querySelector("[role=alert]");
    return told ? told.textContent : `not taken: ${answer.status}`;
  }

  async function send(file) {
    const entry = document.createElement("li");
    entry.textContent = `${file.name}: sending`;
    sent.append(entry);
    const answer = await fetch(`${drop.dataset.url}/${encodeURIComponent(file.name)}`, {
      method: "PUT",
      body: file,
      credentials: "same-origin",
      headers: { "x-csrf-token": drop.dataset.token },
    });
    if (!answer.ok || answer.redirected) {
      entry.textContent = `${file.name}: ${await trouble(answer)}`;
      return;
    }
    follow(entry, file.name, await answer.json());
  }

  function follow(entry, name, told) {
    const link = document.createElement("a");
    link.href = told.page;
    link.textContent = name;
    const status = document.createElement("span");
    status.textContent = told.known === "processed" ? ": was taken in before" : ": waiting";
    entry.replaceChildren(link, status);
    if (told.known !== "processed") {
      watch(told.state, (ended) => {
        status.textContent = `: ${ended}`;
      });
    }
  }

  function sendAll(files) {
    for (const file of files) {
      send(file).catch(() => {
        const entry = document.createElement("li");
        entry.textContent = `${file.name}: the server does not answer`;
        sent.append(entry);
      });
    }
  }

  chosen.addEventListener("change", () => sendAll(chosen.files));
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) {
    drop.addEventListener(name, () => drop.classList.remove("over"));
  }
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    sendAll(event.dataTransfer.files);
  });
})();
