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
}
