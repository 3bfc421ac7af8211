// Loads the days of a week once more with free times, for which the server asks the calendars.
const box = document.querySelector("[data-part]");

/** @param {boolean} asking */
function showAsking(asking) {
  box.querySelector("[data-ask]").hidden = asking;
  box.querySelector("[data-asking]").hidden = !asking;
}

async function load() {
  showAsking(true);
  const response = await fetch(box.dataset.part, { redirect: "error" }).catch(() => null);
  if (!response?.ok) return showAsking(false);
  const days = await response.text();
  // Do not replace the days while an element in them has focus.
  if (!box.matches(":focus-within")) return void (box.innerHTML = days);
  box.addEventListener("focusout", () => setTimeout(() => (box.innerHTML = days)), { once: true });
}

if (box) load();
