// Replaces the content of the page when the server has a new reading. Scroll, focus, typed values and details stay.
"use strict";
(() => {
  let busy = false, late = false;

  function controls(root) {
    return [...root.querySelectorAll("input[name], select[name]")];
  }

  function focusable(root) {
    return [...root.querySelectorAll("a, button, input, select, summary, [tabindex]")];
  }

  function keep(before, after) {
    const typed = controls(before);
    controls(after).forEach((one, place) => {
      const own = typed[place];
      if (own && own.name === one.name) one.value = own.value;
    });
    const open = [...before.querySelectorAll("details")];
    after.querySelectorAll("details").forEach((one, place) => {
      if (open[place]) one.open = open[place].open;
    });
  }

  function mark(one) {
    return [one.tagName, one.id, one.getAttribute("href"), one.name].join(" ");
  }

  function replace(before, after) {
    keep(before, after);
    const active = document.activeElement;
    const inside = before.contains(active) && before !== active;
    const twins = inside ? focusable(before).filter(one => mark(one) === mark(active)) : [];
    const place = twins.indexOf(active);
    const typing = inside && active.tagName === "INPUT" && active.selectionStart !== null;
    const caret = typing ? [active.selectionStart, active.selectionEnd] : null;
    const scrolled = [...before.querySelectorAll(".scroll")].map(one => one.scrollLeft);
    before.replaceChildren(...after.childNodes);
    before.querySelectorAll(".scroll").forEach((one, number) => { one.scrollLeft = scrolled[number] || 0; });
    if (inside) {
      const same = focusable(before).filter(one => mark(one) === mark(active));
      const one = same[Math.min(Math.max(place, 0), same.length - 1)];
      if (one) one.focus({preventScroll: true});
      if (one && caret !== null) one.setSelectionRange(...caret);
    }
  }

  function problem(fresh) {
    const before = document.querySelector("header .problem");
    const after = fresh.querySelector("header .problem");
    if (before) before.remove();
    if (after) document.querySelector("header").append(after);
  }

  async function update() {
    late = busy || !getSelection().isCollapsed;
    if (late) return;
    busy = true;
    try {
      const answer = await fetch(location.href, {cache: "no-store"});
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [x, y] = [scrollX, scrollY];
      for (const name of [".top", "#main"]) {
        const [before, after] = [document.querySelector(name), fresh.querySelector(name)];
        if (before && after) replace(before, after);
      }
      problem(fresh);
      scrollTo({left: x, top: y, behavior: "instant"});
    } finally {
      busy = false;
    }
  }

  let source = null, missed = false;

  // A browser does not ask again after an error such as "all streams are taken". Readings may be missed meanwhile.
  function connect() {
    source = new EventSource("/events");
    source.addEventListener("reading", update);
    source.addEventListener("open", () => { if (missed) update(); missed = false; });
    source.addEventListener("error", () => {
      missed = true;
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    });
  }

  // A reading is not shown while text is selected: it is shown afterwards.
  document.addEventListener("selectionchange", () => { if (late && getSelection().isCollapsed) update(); });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", event => { if (event.persisted) { missed = true; connect(); } });
  connect();
})();
