// How the scripts of pages ask the server. What goes wrong is thrown in words for a person to read.
"use strict";

const memgraphAsking = (() => {
  // The JSON of an answer.
  async function answered(address, options = {}) {
    const answer = await fetch(address, { credentials: "same-origin", ...options }).catch(() => {
      throw new Error("the server does not answer");
    });
    if (answer.redirected) throw new Error("the session has ended: sign in again");
    if (!answer.ok) throw new Error(await trouble(answer));
    return answer.json();
  }

  // What an error page says.
  async function trouble(answer) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const told = page.querySelector("[role=alert]");
    return told ? told.textContent.trim() : `not answered: ${answer.status}`;
  }

  return { answered };
})();
