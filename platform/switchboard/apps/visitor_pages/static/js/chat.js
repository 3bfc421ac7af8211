// The chat: messages, and the conversation that goes on after a page was loaded again.
import { describeRefusal, request } from "./requests.js";

/** Storage may be forbidden in frames of other sites; then a conversation ends with the page. */
function openStorage(name) {
  let kept = null;
  return {
    read() {
      try {
        return sessionStorage.getItem(name);
      } catch {
        return kept;
      }
    },
    write(value) {
      kept = value;
      try {
        if (value) sessionStorage.setItem(name, value);
        else sessionStorage.removeItem(name);
      } catch {
        // `kept` has it.
      }
    },
  };
}

export function createChat({ key, labels, find, showMessage, showState, greeting }) {
  const form = find("form");
  if (!form) return { resume() {}, disable() {}, readSession: () => null };
  const field = find("text");
  const button = form.querySelector("button");
  const session = openStorage(`switchboard:${key}`);
  let resumed = false;

  async function resume() {
    if (resumed || !session.read()) return;
    resumed = true;
    try {
      const { entries } = await request(key, "messages", { session: session.read() });
      if (entries.length) greeting?.remove();
      for (const { role, content } of entries) showMessage(role, content);
    } catch (error) {
      if (error.code === "not_found") session.write(null);
    }
  }

  function disable(on) {
    field.disabled = button.disabled = on;
  }

  async function send() {
    const text = field.value.trim();
    if (!text || button.disabled) return;
    resumed = true;
    const bubble = showMessage("user", text);
    field.value = "";
    button.disabled = true;
    showState(labels.typing);
    try {
      const { session: token, answer } = await request(key, "messages", { session: session.read(), body: { text } });
      session.write(token);
      showState("");
      if (answer) showMessage("agent", answer);
    } catch (error) {
      bubble.remove();
      if (!field.value) field.value = text;
      showState(describeRefusal(error, labels));
    } finally {
      button.disabled = false;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  return { resume, disable, readSession: session.read };
}
