// Convenience only: without it everything works, one choice at a time.
(() => {
  "use strict";
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
