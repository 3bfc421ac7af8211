// Samples as tabs. The chosen language holds for all samples, and is remembered.
const MEMORY = "switchboard-docs-language";

function show(language) {
  for (const samples of document.querySelectorAll(".samples")) {
    for (const part of samples.querySelectorAll(":scope > [data-language]")) part.hidden = part.dataset.language !== language;
    for (const button of samples.querySelectorAll("[data-choose]")) {
      button.setAttribute("aria-pressed", String(button.dataset.choose === language));
    }
  }
}

function choose(language) {
  try {
    localStorage.setItem(MEMORY, language);
  } catch {
    // The browser keeps nothing for this page.
  }
  show(language);
}

function recall() {
  try {
    return localStorage.getItem(MEMORY);
  } catch {
    return null;
  }
}

export function prepareSamples() {
  const all = document.querySelectorAll(".samples");
  for (const samples of all) {
    const choices = document.createElement("div");
    choices.className = "choices-of-language";
    for (const part of samples.querySelectorAll("[data-language]")) {
      const heading = part.querySelector("h3");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button small";
      button.dataset.choose = part.dataset.language;
      button.textContent = heading.textContent;
      button.addEventListener("click", () => {
        const before = button.getBoundingClientRect().top;
        choose(button.dataset.choose);
        // Samples above have changed their height; the button stays below the pointer.
        scrollBy(0, button.getBoundingClientRect().top - before);
      });
      choices.append(button);
      heading.classList.add("visually-hidden");
    }
    samples.prepend(choices);
  }
  if (!all.length) return;
  const languages = [...all[0].querySelectorAll("[data-choose]")].map((button) => button.dataset.choose);
  show(languages.includes(recall()) ? recall() : languages[0]);
}
