// Shows the look of a widget while its form is filled in. The preview is the widget's own frame.

const frame = document.querySelector("[data-preview]");
const form = frame?.closest("form");

function showLook() {
  const { title, greeting, color, position } = form.elements;
  const look = { color: color.value, position: position.value, title: title.value || frame.dataset.name, greeting: greeting.value || frame.dataset.greeting };
  frame.contentWindow.postMessage({ switchboard: "preview", ...look }, location.origin);
}

if (frame) {
  addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow || data?.switchboard !== "ready") return;
    frame.contentWindow.postMessage({ switchboard: "open" }, location.origin);
    showLook();
  });
  form.addEventListener("input", showLook);
  form.elements.language.addEventListener("change", () => {
    const address = new URL(frame.src);
    address.searchParams.set("language", form.elements.language.value);
    frame.src = address;
  });
  // The frame may have been ready before this module.
  frame.contentWindow.postMessage({ switchboard: "hello" }, location.origin);
}
