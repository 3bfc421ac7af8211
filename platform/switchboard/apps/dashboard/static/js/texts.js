// Ctrl+Enter or Command+Enter sends a reply.
document.getElementById("field-body")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});
