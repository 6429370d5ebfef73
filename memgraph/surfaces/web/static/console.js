// The little that pages do by themselves; all of them work without it.
"use strict";

// What cannot be taken back by a click is asked for once more.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

for (const button of document.querySelectorAll("button[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

// Ctrl-K, or Command-K, from anywhere.
document.addEventListener("keydown", (event) => {
  const everywhere = document.getElementById("everywhere");
  if (!everywhere || event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  everywhere.focus();
  everywhere.select();
});

// A day that is picked is written into the field beside it, where words may stand, too.
for (const picker of document.querySelectorAll("input[data-fills]")) {
  picker.hidden = false;
  picker.addEventListener("change", () => {
    document.getElementById(picker.dataset.fills).value = picker.value;
  });
}

// What the last check of the journal came to: asked for once, and not waited for.
const seals = [...document.querySelectorAll("[data-seal]")];
if (seals.length) {
  fetch(seals[0].dataset.seal, { credentials: "same-origin" })
    .then((answer) => (answer.ok && !answer.redirected ? answer.json() : null))
    .catch(() => null)
    .then((seal) => {
      for (const each of seals) {
        each.textContent = seal ? seal.text : "";
        each.classList.toggle("broken", Boolean(seal) && !seal.ok);
      }
    });
}
