// Whoever asks for opening hours begins with those of an office.
for (const hours of document.querySelectorAll(".hours")) {
  hours.querySelector(":scope > .check input[type=checkbox]").addEventListener("change", (event) => {
    if (event.target.checked && !hours.querySelector(".slot[data-row]")) hours.querySelector("[data-add]").click();
  });
}
