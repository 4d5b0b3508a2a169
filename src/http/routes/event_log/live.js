// Adds events as they are written. Without this script the page shows the same, and does not change.
"use strict";
{
  const live = document.getElementById("live");
  const events = document.getElementById("events");
  const most = Number(events.dataset.most ?? 500);
  const words = JSON.parse(events.dataset.words);
  const noEvents = document.getElementById("no-events");
  const seen = new Set([...events.rows].map((row) => row.dataset.id));
  // The pages of feeds to which rows lead already.
  const feeds = new Map();
  for (const link of events.querySelectorAll("td[data-name=Feed] a")) feeds.set(link.textContent, link.href);
  const leadTo = (cell, href) => {
    const link = document.createElement("a");
    link.href = href;
    link.textContent = cell.textContent;
    cell.replaceChildren(link);
  };

  const line = (event) => {
    const row = document.createElement("tr");
    row.dataset.id = event.id;
    row.className = event.outcome;
    const { past, noun } = words[event.kind];
    const isOk = event.outcome === "ok";
    const isWebhook = event.kind !== "ping" && event.via === "websub";
    const details = [
      event.count > 1 ? `${event.count}\u00a0times` : "",
      isWebhook ? "webhook" : event.via,
      isOk ? "" : event.code,
      event.took_ms === null ? "" : `${event.took_ms}\u00a0ms`,
    ];
    const cells = {
      Time: "",
      Event: isOk ? past : `${noun} ${event.outcome}`,
      Feed: event.feed,
      Callback: event.callback,
      Details: details.filter(Boolean).join("\u00a0· "),
      Message: event.detail,
    };
    for (const [name, text] of Object.entries(cells)) {
      const cell = row.insertCell();
      cell.dataset.name = name;
      cell.textContent = text;
      if (name === "Feed" || name === "Callback") cell.title = text;
    }
    const time = document.createElement("time");
    time.dateTime = time.title = `${event.at.slice(0, 19)}Z`;
    time.textContent = `${event.at.slice(0, 19).replace("T", " ")} UTC`;
    row.cells[0].append(time);
    if (events.dataset.pages) leadTo(row.cells[1], events.dataset.pages + event.id);
    if (feeds.has(event.feed)) leadTo(row.cells[2], feeds.get(event.feed));
    return row;
  };

  if (live.dataset.stream && window.EventSource) {
    const source = new EventSource(live.dataset.stream);
    source.onopen = () => { live.textContent = "Live: new events appear automatically."; };
    source.onerror = () => { live.textContent = "Disconnected. Reconnecting…"; };
    source.onmessage = (message) => {
      if (seen.has(message.lastEventId)) return;
      seen.add(message.lastEventId);
      noEvents.hidden = true;
      events.prepend(line(JSON.parse(message.data)));
      while (events.rows.length > most) {
        seen.delete(events.rows[most].dataset.id);
        events.deleteRow(most);
      }
    };
  }
}
