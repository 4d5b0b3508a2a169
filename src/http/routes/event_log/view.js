// Adds lines as they are written. Without it the page is the same, and stands still.
"use strict";
{
  const MOST = 500;
  const live = document.getElementById("live");
  const events = document.getElementById("events");
  const seen = new Set([...events.rows].map((row) => row.dataset.id));

  const line = (event) => {
    const row = document.createElement("tr");
    row.dataset.id = event.id;
    row.className = event.outcome;
    const how = [
      event.count > 1 ? `${event.count} times` : "",
      event.via,
      event.code,
      event.took_ms === null ? "" : `${event.took_ms} ms`,
    ];
    const cells = {
      When: event.at.slice(0, 19).replace("T", " "),
      What: `${event.kind} ${event.outcome}`,
      Feed: event.feed,
      Callback: event.callback,
      How: how.filter(Boolean).join(" · "),
      Why: event.detail,
    };
    for (const [name, text] of Object.entries(cells)) {
      const cell = row.insertCell();
      cell.dataset.name = name;
      cell.textContent = text;
    }
    return row;
  };

  if (live.dataset.stream && window.EventSource) {
    const source = new EventSource(live.dataset.stream);
    source.onopen = () => { live.textContent = "Live: new lines appear by themselves."; };
    source.onerror = () => { live.textContent = "Not live at the moment."; };
    source.onmessage = (message) => {
      if (seen.has(message.lastEventId)) return;
      seen.add(message.lastEventId);
      events.prepend(line(JSON.parse(message.data)));
      while (events.rows.length > MOST) {
        seen.delete(events.rows[MOST].dataset.id);
        events.deleteRow(MOST);
      }
    };
  }
}
