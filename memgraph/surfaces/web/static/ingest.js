// Uploads files and polls their state. Names and responses are set as text.
"use strict";

(() => {
  const { answered } = memgraphShared;
  const AGAIN_MS = 700;
  const drop = document.getElementById("drop");
  const state = document.getElementById("state");

  // The final state of a file that waits.
  async function settled(url) {
    for (;;) {
      await new Promise((after) => setTimeout(after, AGAIN_MS));
      const told = await answered(url);
      if (told.status !== "waiting") return told.status;
    }
  }

  if (state && state.dataset.status === "waiting") {
    settled(state.dataset.url).then(
      () => location.reload(),
      (error) => {
        state.textContent = error.message;
      },
    );
  }
  if (!drop) return;
  drop.hidden = false;

  const chosen = document.getElementById("files");
  const sent = document.getElementById("sent");

  // A line of the list: a name, and how far it is.
  function begun(file) {
    const [entry, status] = [document.createElement("li"), document.createElement("span")];
    status.textContent = ": sending";
    entry.append(file.name, status);
    sent.append(entry);
    return { file, entry, status };
  }

  async function send({ file, entry, status }) {
    const told = await answered(`${drop.dataset.url}/${encodeURIComponent(file.name)}`, {
      method: "PUT",
      body: file,
      headers: { "x-csrf-token": drop.dataset.token },
    });
    const link = document.createElement("a");
    link.href = told.page;
    link.textContent = file.name;
    entry.replaceChildren(link, status);
    status.textContent = told.known === "processed" ? ": already processed" : ": waiting";
    return told.known === "processed" ? null : told.state;
  }

  // One after the other: a folder of files is no crowd of requests.
  async function sendAll(files) {
    const lines = [...files].map(begun);
    const waiting = [];
    for (const line of lines) {
      await telling(line, async () => waiting.push([line, await send(line)]));
    }
    for (const [line, url] of waiting.filter((each) => each[1] !== null)) {
      await telling(line, async () => {
        line.status.textContent = `: ${await settled(url)}`;
      });
    }
    await renewed().catch(() => undefined); // the lines above show the state of each file
  }

  // The table below, as the server has it now.
  async function renewed() {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.getElementById("known");
    if (now) document.getElementById("known").replaceWith(document.adoptNode(now));
  }

  async function telling(line, work) {
    try {
      await work();
    } catch (error) {
      line.status.textContent = `: ${error.message}`;
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
