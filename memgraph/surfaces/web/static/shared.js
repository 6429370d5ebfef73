// What the scripts of pages share. Errors are thrown with a message for people.
"use strict";

const memgraphShared = (() => {
  // The JSON of a response.
  async function answered(address, options = {}) {
    const answer = await fetch(address, { credentials: "same-origin", ...options }).catch(() => {
      throw new Error("the server did not respond");
    });
    if (answer.redirected) throw new Error("your session has ended: sign in again");
    if (!answer.ok) throw new Error(await trouble(answer));
    return answer.json();
  }

  // The message of an error page.
  async function trouble(answer) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const alert = page.querySelector("[role=alert]");
    return alert ? alert.textContent.trim() : `request failed: ${answer.status}`;
  }

  // A colour of the style sheet, in the current scheme.
  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  return { answered, colour };
})();
