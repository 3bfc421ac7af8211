// Search over an index that is loaded with the first word. "/" focuses, arrows choose, Enter opens, Escape closes.
const MOST = 12;

// Rank a place for the words of a query; 0 where a word is missing. A word matches the beginning of a word.
export function rank(place, words) {
  let sum = 0;
  for (const word of words) {
    const title = place.titleText.indexOf(` ${word}`) >= 0;
    const near = title || place.nearText.indexOf(` ${word}`) >= 0;
    if (!near && place.farText.indexOf(` ${word}`) < 0) return 0;
    sum += title ? 12 : near ? 3 : 1;
  }
  return sum / words.length + (place.titleText.trim() === words.join(" ") ? 10 : 0);
}

const plain = (text) => ` ${text.toLowerCase().replace(/[^\p{L}\p{N}_+-]+/gu, " ")} `;

async function load(address) {
  const response = await fetch(address, { credentials: "omit" });
  if (!response.ok) throw new Error(`the index answered ${response.status}`);
  const places = await response.json();
  return places.map((place) => ({
    ...place,
    titleText: plain(place.title),
    nearText: plain(`${place.page} ${place.preview}`),
    farText: ` ${place.words}`,
  }));
}

export function prepareSearch() {
  const box = document.querySelector("[data-search]");
  const input = box.querySelector("input");
  const list = document.getElementById("docs-found");
  let index = null;
  let chosen = -1;
  box.hidden = false;

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };

  const choose = (place) => {
    const options = list.querySelectorAll("[role=option]");
    if (!options.length) return;
    chosen = (place + options.length) % options.length;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[chosen].id);
  };

  const show = (places) => {
    list.replaceChildren();
    places.forEach((place, number) => {
      const option = document.createElement("a");
      option.id = `found-${number}`;
      option.href = place.address;
      option.tabIndex = -1;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const parts = [
        ["strong", place.title],
        ["span", place.page === place.title ? "" : place.page],
        ["small", place.preview],
      ];
      for (const [name, text] of parts) option.appendChild(document.createElement(name)).textContent = text;
      list.append(option);
    });
    if (!places.length) {
      const nothing = list.appendChild(document.createElement("div"));
      nothing.setAttribute("role", "option");
      nothing.setAttribute("aria-disabled", "true");
      nothing.setAttribute("aria-selected", "false");
      nothing.textContent = "Nothing found.";
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    chosen = -1;
  };

  const search = async () => {
    const asked = input.value;
    const words = plain(asked).trim().split(" ").filter(Boolean);
    if (!words.length) return close();
    index ??= load(box.dataset.search);
    let places;
    try {
      places = await index;
    } catch {
      index = null; // the next key tries again
      return close();
    }
    if (input.value !== asked) return;
    const ranked = places.map((place) => [rank(place, words), place]).filter(([points]) => points);
    ranked.sort(([one], [other]) => other - one);
    show(ranked.slice(0, MOST).map(([, place]) => place));
  };

  input.addEventListener("input", search);
  input.addEventListener("focus", () => input.value && search());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? -1 : chosen - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      (list.querySelector("[aria-selected=true]") ?? list.querySelector("a"))?.click();
    } else if (event.key === "Escape") {
      close();
    }
  });
  // A place on this page is no new page; the list would stay.
  list.addEventListener("click", close);
  document.addEventListener("click", (event) => {
    if (!list.contains(event.target) && event.target !== input) close();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!input.checkVisibility({ visibilityProperty: true })) {
      // On a small screen the search is in the menu, which takes a moment to open.
      input.closest("nav").addEventListener("transitionend", () => input.focus(), { once: true });
      document.querySelector("[data-menu]").click();
    }
    input.focus();
  });
}
