// The question before an action, in the layout's dialog.
const dialog = document.getElementById("question");

// Ask a question; `answer` is the text of the button that agrees, red if what follows `isDanger`. Resolves to whether it was pressed.
export function askFirst(question, answer, isDanger) {
  dialog.querySelector("p").textContent = question;
  const agree = dialog.querySelector("[value=yes]");
  agree.textContent = answer;
  agree.className = `button ${isDanger ? "danger" : "primary"}`;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
