// Shows a widget in a corner of the page: <script src="https://…/widget/v1.js" data-key="pk_…" async></script>
// Everything is in a frame of the widget's server; this script only sizes and places the frame.
(() => {
  const EXPLAIN_MILLISECONDS = 2000;
  const { src, dataset } = document.currentScript;
  const address = new URL(`${encodeURIComponent(dataset.key ?? "")}/frame`, src);
  if (dataset.language) address.searchParams.set("language", dataset.language);
  const narrow = matchMedia("(max-width: 480px)");
  const frame = document.createElement("iframe");
  let side = "right";
  let open = false;

  function place() {
    const whole = open && narrow.matches;
    const style = {
      all: "initial",
      position: "fixed",
      bottom: "0",
      [side]: "0",
      border: "0",
      width: whole ? "100%" : open ? "420px" : "88px",
      height: whole ? "100%" : open ? "min(660px, 100%)" : "88px",
      "max-width": "100%",
      "z-index": "2147483000",
      "color-scheme": "light dark",
    };
    frame.removeAttribute("style");
    for (const [name, value] of Object.entries(style)) frame.style.setProperty(name, value, "important");
    frame.contentWindow?.postMessage({ switchboard: "placed", whole }, address.origin);
  }

  addEventListener("message", ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== address.origin) return;
    if (data?.switchboard === "ready") {
      side = data.position === "left" ? "left" : "right";
      frame.title = data.title;
      frame.hidden = false;
      if ("open" in dataset) frame.contentWindow.postMessage({ switchboard: "open" }, address.origin);
    } else if (data?.switchboard === "resize") open = data.open;
    else return;
    place();
  });
  narrow.addEventListener("change", place);

  function explain() {
    if (frame.hidden) console.warn(`The widget is not shown: it is turned off, or ${location.origin} is not among its allowed sites.`);
  }

  function add() {
    frame.src = address;
    frame.allow = "microphone; autoplay";
    frame.referrerPolicy = "origin";
    frame.hidden = true; // until the widget is there: without it, or on a site that may not show it, nothing is seen
    frame.title = "Chat";
    frame.addEventListener("load", () => setTimeout(explain, EXPLAIN_MILLISECONDS));
    document.body.append(frame);
  }
  if (document.body) add();
  else addEventListener("DOMContentLoaded", add);
})();
