// Small conveniences; every page works without them.
"use strict";

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

// Copy a picked date into the text field beside it, which also accepts words.
for (const picker of document.querySelectorAll("input[data-fills]")) {
  picker.hidden = false;
  picker.addEventListener("change", () => {
    document.getElementById(picker.dataset.fills).value = picker.value;
  });
}

// A page whose subject is in progress is loaded again.
const progress = document.querySelector("[data-reload]");
if (progress) setTimeout(() => location.reload(), Number(progress.dataset.reload));
