// Makes the pages of the console more pleasant. Without this script they show and do the same.
"use strict";
{
  // Times are shown in the time zone of the browser, with UTC as their title.
  for (const time of document.querySelectorAll("time[datetime]:not(.relative)")) {
    const at = new Date(time.dateTime);
    time.title = time.dateTime;
    time.textContent = at.toLocaleString();
  }
  // What cannot be undone is asked for once more.
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
  // What is in progress is brought up to date until it has ended. The status stays the same element,
  // so that screen readers say what it becomes.
  const follow = async () => {
    const part = document.querySelector("[data-in-progress]");
    if (!part) return;
    try {
      const response = await fetch(location.href);
      if (!response.ok) return location.reload();
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const newer = page.getElementById(part.id);
      if (!newer) return location.reload();
      document.getElementById("status").replaceChildren(...page.getElementById("status").childNodes);
      part.replaceWith(newer);
    } catch {
      // The gateway does not answer at the moment.
    }
    setTimeout(follow, 1000);
  };
  setTimeout(follow, 500);
}
