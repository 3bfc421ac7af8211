// Shows the time since a moment: `<time data-since="2026-11-20T09:30:00Z">`.

function show() {
  for (const time of document.querySelectorAll("time[data-since]")) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dataset.since)) / 1000));
    if (!Number.isNaN(seconds)) time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }
}

show();
setInterval(show, 1000);
document.addEventListener("live", show);
