// Changes the builder's rows without reloading the page: the server returns the same page as without this module, and its builder replaces the old one.

const there = () => document.getElementById("builder");

/** The element to focus after a change: the new row's first field, the button that moved a row, or the list's last button. */
function next(builder, change) {
  const [verb, list, place] = change.split(":");
  const part = builder.querySelector(`[data-list="${list}"]`);
  if (!part) return builder.querySelector('[name="trigger_type"]');
  const rows = part.querySelectorAll(".builder-row");
  if (verb === "add") return rows[rows.length - 1]?.querySelector("input:not([type=hidden]), select, textarea, button");
  if (verb === "remove") return part.querySelector(`[value="add:${list}"]`);
  const moved = rows[Number(place) + (verb === "up" ? -1 : 1)];
  return moved?.querySelector(`[value^="${verb}:"]`) ?? moved?.querySelector('[name="change"]');
}

async function change(form, button) {
  const builder = there();
  builder.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(button.formAction, { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("builder");
    if (!answer.ok || !fresh) throw new Error(String(answer.status));
    builder.replaceWith(fresh);
    next(fresh, button.value)?.focus();
  } catch {
    builder.removeAttribute("aria-busy");
    builder.querySelector("[data-trouble]").hidden = false;
  }
}

document.addEventListener("submit", (event) => {
  if (!there()?.contains(event.target) || event.submitter?.name !== "change") return;
  event.preventDefault();
  change(event.target, event.submitter);
});

document.addEventListener("change", (event) => {
  if (event.target.name === "trigger_type") event.target.form.requestSubmit(there().querySelector('[value="trigger"]'));
});
