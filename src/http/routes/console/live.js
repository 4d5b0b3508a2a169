// Requests the charts again from time to time. Without this script they show the time of the request.
"use strict";
{
  const EVERY_MS = 5000;
  const charts = document.getElementById("charts");
  const update = async () => {
    // Who reads the values of a chart is not interrupted.
    const isRead = charts.contains(document.activeElement) || charts.querySelector("details[open]");
    if (!document.hidden && !isRead) {
      const response = await fetch(charts.dataset.source).catch(() => null);
      if (response?.ok) charts.innerHTML = await response.text();
    }
    setTimeout(update, EVERY_MS);
  };
  if (charts) setTimeout(update, EVERY_MS);
}
