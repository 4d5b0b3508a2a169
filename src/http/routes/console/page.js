// Makes the pages of the console more pleasant. Without this script they show and do the same.
"use strict";
{
  // What cannot be undone is asked for once more.
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
  // What people copy has a button that does.
  for (const block of document.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.textContent);
        button.textContent = "Copied";
      } catch {
        // Browsers have no clipboard for pages that come without TLS.
        getSelection().selectAllChildren(block);
        button.textContent = "Selected";
      }
    });
    block.before(button);
  }
  // What a form reports is displayed on its own page, because some of that is displayed only once.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.report || event.defaultPrevented) return;
    event.preventDefault();
    const report = document.getElementById(form.dataset.report);
    const display = (role, text) => {
      report.setAttribute("role", role);
      report.textContent = text;
    };
    display("status", "Sending…");
    try {
      const body = new URLSearchParams(new FormData(form, event.submitter));
      const response = await fetch(form.getAttribute("action"), { method: "POST", body });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const found = page.querySelector("main [role=status], main [role=alert]");
      display(found?.getAttribute("role") ?? "alert", found?.textContent ?? response.statusText);
    } catch {
      display("alert", "The gateway does not respond.");
    }
  });
  // Who types into a field chooses it.
  document.addEventListener("input", (event) => {
    const choice = event.target.closest("[data-choice]")?.querySelector("[type=radio]");
    if (choice) choice.checked = true;
  });
  // All rows of a page are selected at once.
  for (const all of document.querySelectorAll("input[data-all]")) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of all.form.querySelectorAll("input[name=id]")) box.checked = all.checked;
    });
  }
  // The values of a chart are read with the arrow keys, from the newest on.
  document.addEventListener("keydown", (event) => {
    const chart = event.target.closest("svg.time");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!chart || !step) return;
    event.preventDefault();
    const periods = [...chart.querySelectorAll(".at rect")];
    const from = periods.findIndex((period) => period.classList.contains("on"));
    const to = from < 0 ? periods.length - 1 : Math.max(0, Math.min(periods.length - 1, from + step));
    periods[from]?.classList.remove("on");
    periods[to].classList.add("on");
    chart.closest("figure").querySelector("output").textContent = periods[to].textContent;
  });
  // Lists are used with the keyboard, unless somebody is typing.
  const keys = {
    "/": ["search", () => document.querySelector("input[type=search]")?.focus()],
    j: ["next row", () => move(1)],
    k: ["row before", () => move(-1)],
    x: ["select the row", () => row()?.querySelector("input[name=id]")?.click()],
    "?": ["these keys", () => help()],
  };
  const row = () => document.activeElement.closest("tbody tr");
  const move = (step) => {
    const links = [...document.querySelectorAll(".records tbody tr")]
      .map((line) => line.querySelector("a")).filter((link) => link?.checkVisibility());
    const at = links.findIndex((link) => link.closest("tr") === row());
    links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step]?.focus();
  };
  const help = () => {
    const dialog = document.createElement("dialog");
    const lines = Object.entries(keys).map(([key, [text]]) => {
      const line = document.createElement("p");
      const name = document.createElement("kbd");
      name.textContent = key;
      line.append(name, ` ${text}`);
      return line;
    });
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.setAttribute("aria-label", "Keys");
    dialog.append(...lines, close);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("textarea, select, dialog, input:not([type=checkbox])");
    const key = Object.hasOwn(keys, event.key) && keys[event.key];
    if (!key || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    key[1]();
  });
  // The icons of sites replace their letters when they come into view, a few at a time.
  const tiles = [];
  let loading = 0;
  const loadIcons = async () => {
    if (loading >= 4 || !tiles.length) return;
    loading += 1;
    const tile = tiles.shift();
    try {
      const response = await fetch(tile.dataset.icon);
      if (response.status === 200) tile.replaceChildren(await picture(await response.blob()));
    } catch {
      // What cannot be displayed leaves the letter.
    }
    loading -= 1;
    loadIcons();
  };
  const picture = async (blob) => {
    const image = document.createElement("img");
    image.alt = "";
    image.src = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => resolve(reader.result));
      reader.addEventListener("error", reject);
      reader.readAsDataURL(blob);
    });
    await image.decode();
    return image;
  };
  const inView = new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      inView.unobserve(target);
      tiles.push(target);
      loadIcons();
    }
  });
  for (const tile of document.querySelectorAll("[data-icon]")) inView.observe(tile);
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
