// Requests the charts again from time to time. Without this script they show the time of the request.
"use strict";
{
  const EVERY_MS = 5000;
  const charts = document.getElementById("charts");
  const update = async () => {
    if (!document.hidden) {
      const response = await fetch(charts.dataset.source).catch(() => null);
      if (response?.ok) charts.innerHTML = await response.text();
    }
    setTimeout(update, EVERY_MS);
  };
  if (charts) setTimeout(update, EVERY_MS);
}
