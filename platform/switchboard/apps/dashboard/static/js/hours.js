// Enabling opening hours adds office hours as the first row.
for (const hours of document.querySelectorAll(".hours")) {
  hours.querySelector(":scope > .check input[type=checkbox]").addEventListener("change", (event) => {
    if (event.target.checked && !hours.querySelector(".slot[data-row]")) hours.querySelector("[data-add]").click();
  });
}
