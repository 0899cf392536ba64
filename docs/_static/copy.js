// A button that copies a block of code, so that a page can be followed block after block.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div[class*=highlight-]:not(.highlight-text) > div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy";
    button.onclick = async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").innerText);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    };
    block.append(button);
  }
});
