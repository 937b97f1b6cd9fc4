// Convenience only: without it everything works, one choice at a time.
(() => {
  "use strict";
  // A corruption chosen in one group of drawings is chosen in the others of its section.
  document.addEventListener("change", (event) => {
    const pick = event.target;
    if (!(pick instanceof HTMLInputElement) || !pick.classList.contains("pick")) return;
    const part = pick.closest(".part");
    if (!part) return;
    for (const other of part.querySelectorAll(".pick")) {
      if (other.dataset.shift === pick.dataset.shift && other.name !== pick.name) other.checked = true;
    }
  });
  // Browsers that cannot open closed parts for print by style alone.
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not(.numbers)")) part.open = true;
  });
  // A box that needs no scrolling needs no place in the tab order.
  const settle = () => {
    for (const box of document.querySelectorAll(".scroll, .large")) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", settle);
  document.addEventListener("change", settle);
  settle();
})();
