// The player of a call's recording: a waveform for seeking, and a transcript that follows playback.
// Without this module, the browser's player is shown.
import { _ } from "./messages.js";

const STEP_SECONDS = 5;

/** @param {number} seconds */
function formatTime(seconds) {
  const wholeSeconds = Math.max(0, Math.floor(seconds || 0));
  return `${Math.floor(wholeSeconds / 60)}:${String(wholeSeconds % 60).padStart(2, "0")}`;
}

/**
 * Give a player its own controls.
 * @param {HTMLElement} player
 */
function startPlayer(player) {
  const audio = player.querySelector("audio");
  const play = player.querySelector("[data-play]");
  const lines = [...document.querySelectorAll("[data-transcript] [data-end]")];
  const wave = player.querySelector("[data-wave]");
  player.dataset.started = "true";
  audio.controls = false;
  player.querySelector("[data-player-bar]").hidden = false;

  const getLength = () => (Number.isFinite(audio.duration) ? audio.duration : Number(wave.dataset.seconds) || 0);
  const seek = (seconds) => {
    audio.currentTime = Math.min(Math.max(0, seconds), getLength() || seconds);
  };
  const toggle = () => (audio.paused ? audio.play() : audio.pause());

  function show() {
    const now = audio.currentTime;
    player.querySelector("[data-time]").textContent = formatTime(now);
    if (getLength()) player.querySelector("[data-length]").textContent = formatTime(getLength());
    wave.querySelector("[data-played]")?.setAttribute("width", `${(now / (getLength() || 1)) * 100}%`);
    wave.setAttribute("aria-valuenow", String(Math.round(now)));
    wave.setAttribute("aria-valuemax", String(Math.round(getLength())));
    wave.setAttribute("aria-valuetext", `${formatTime(now)} of ${formatTime(getLength())}`);
    const currentLine = audio.paused && now === 0 ? undefined : lines.findLast((line) => Number(line.dataset.start) <= now * 1000 + 50);
    for (const line of lines) line.setAttribute("aria-current", String(line === currentLine));
  }

  function followPlayback() {
    show();
    if (!audio.paused) requestAnimationFrame(followPlayback);
  }

  for (const event of ["seeked", "loadedmetadata", "timeupdate", "pause", "ended"]) audio.addEventListener(event, show);
  audio.addEventListener("play", followPlayback);
  for (const event of ["play", "pause", "ended"]) {
    audio.addEventListener(event, () => {
      play.classList.toggle("playing", !audio.paused);
      play.setAttribute("aria-label", audio.paused ? _("Play") : _("Pause"));
    });
  }
  play.addEventListener("click", toggle);
  player.querySelector("[data-speed]").addEventListener("change", (event) => {
    audio.playbackRate = Number(event.target.value);
  });
  for (const line of lines) {
    line.addEventListener("click", () => {
      if (String(getSelection())) return;
      seek(Number(line.dataset.start) / 1000);
      audio.play();
    });
  }
  if (player.dataset.waveform) loadWaveform(player.dataset.waveform, wave, { seek, toggle, show, length: getLength, now: () => audio.currentTime });
  show();
}

/**
 * Fetch the waveform and make it seekable by pointer and keyboard.
 * @param {string} address
 * @param {HTMLElement} wave
 * @param {{seek: (seconds: number) => void, toggle: () => void, show: () => void, length: () => number, now: () => number}} audio
 */
async function loadWaveform(address, wave, audio) {
  const response = await fetch(address);
  if (!response.ok) return;
  wave.innerHTML = await response.text();
  wave.dataset.seconds = wave.firstElementChild.dataset.seconds;
  for (const [name, value] of Object.entries({ role: "slider", tabindex: "0", "aria-label": _("Position in the recording"), "aria-valuemin": "0" })) {
    wave.setAttribute(name, value);
  }
  const seekToPointer = (event) => {
    const box = wave.getBoundingClientRect();
    audio.seek(((event.clientX - box.left) / box.width) * audio.length());
  };
  wave.addEventListener("pointerdown", (event) => {
    wave.setPointerCapture(event.pointerId);
    seekToPointer(event);
  });
  wave.addEventListener("pointermove", (event) => wave.hasPointerCapture(event.pointerId) && seekToPointer(event));
  const keys = {
    ArrowLeft: () => audio.seek(audio.now() - STEP_SECONDS),
    ArrowRight: () => audio.seek(audio.now() + STEP_SECONDS),
    Home: () => audio.seek(0),
    End: () => audio.seek(audio.length()),
    " ": audio.toggle,
  };
  wave.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  audio.show();
}

function startAllPlayers() {
  for (const player of document.querySelectorAll("[data-player]:not([data-started])")) startPlayer(player);
}

document.addEventListener("live", startAllPlayers);
startAllPlayers();
