// A field of a running kernel as a picture, with its controls. Speaks the anywidget interface and plain DOM only, so
// that it is the same in every host of Jupyter widgets.
//
// From the kernel: traits picture (PNG), frame (its number) and state. To the kernel: messages {view, does, ...}.
// Every shown picture is acknowledged ("took"); the kernel sends the next one after that, so a slow page never
// gets a queue of old pictures.

const SPEEDS = [1, 3, 10, 30, 100, 300, 1000];

function make(tag, className, parent, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  Object.assign(element, attributes);
  parent?.append(element);
  return element;
}

function showError(box, error) {
  box.hidden = !error;
  box.replaceChildren();
  if (!error) return;
  make("b", "", box, { textContent: error.title });
  const text = make("pre", "", box);
  for (const line of error.text.split("\n"))
    make("span", line.startsWith(">") ? "at" : "", text, { textContent: line + "\n" });
}

function showKernels(box, kernels, rollBack) {
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  box.hidden = kernels.length === 0;
  box.replaceChildren();
  for (const kernel of kernels) {
    const part = make("div", "", box);
    make("h4", "", part, { textContent: kernel.id });
    const list = make("ol", "", part);
    for (const version of kernel.versions) {
      const name = `v${version.number}` + (version.restores ? ` = v${version.restores}` : "");
      const button = make("button", version.live ? "live" : "", make("li", "", list), {
        type: "button",
        disabled: version.live,
        title: version.live ? `${kernel.id} ${name} is running` : `roll back to ${kernel.id} ${name}\n\n${version.diff}`,
        onclick: () => rollBack(kernel.id, version.number),
      });
      button.dataset.key = `${kernel.id} ${version.number}`;
      make("span", "", button, { textContent: name });
      if (version.live) make("span", "tag", button, { textContent: "live" });
      make("span", "when", button, { textContent: version.when });
      if (button.dataset.key === focused) button.focus();
    }
  }
}

function render({ model, el }) {
  const view = crypto.randomUUID?.() ?? String(Math.random());
  const say = (does, more = {}) => model.send({ view, does, ...more });

  const root = make("div", "rekernel-view", el);
  // JupyterLab would take Space and Enter on a focused button for shortcuts of its own; others ignore the attribute.
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  const stage = make("div", "stage", root);
  const image = make("img", "", stage, { alt: "the field", decoding: "sync" });
  const scale = make("div", "bar scale", stage);
  const low = make("span", "", scale), ramp = make("i", "", scale), high = make("span", "", scale);
  const bar = make("div", "bar", stage, { role: "group" });
  bar.setAttribute("aria-label", "playing");
  const play = make("button", "play", bar, { type: "button" });
  const step = make("button", "step", bar, { type: "button", textContent: "Step", title: "one step" });
  const speed = make("select", "speed", bar, { title: "how fast" });
  speed.setAttribute("aria-label", "speed");
  const count = make("span", "count", bar);
  const kernels = make("div", "kernels", root);
  kernels.setAttribute("aria-label", "versions");
  const wrong = make("div", "wrong", root, { hidden: true });
  wrong.setAttribute("role", "alert");

  play.onclick = () => say(model.get("state").playing ? "pause" : "play");
  step.onclick = () => say("step");
  speed.onchange = () => say("speed", { speed: Number(speed.value) });

  let shownKernels = "", shownError = "", shownSpeed = "";
  function showState() {
    const state = model.get("state");
    if (!state.shape) return;
    play.textContent = state.playing ? "❚❚ Pause" : "▶ Play";
    play.setAttribute("aria-pressed", String(state.playing));
    step.hidden = speed.hidden = !state.steps_itself;
    const rate = state.rate ? ` · ${state.rate} steps/s` : "";
    count.textContent = state.steps_itself ? `${state.steps.toLocaleString("en")} steps${rate}` : "";
    const [rows, columns] = state.shape;
    const width = Math.round(columns >= rows ? state.size : (state.size * columns) / rows);
    stage.style.width = `${Math.max(width, 260)}px`; // room for the buttons below a small picture
    image.style.width = scale.style.width = `${width}px`;
    image.style.aspectRatio = `${columns} / ${rows}`;
    image.classList.toggle("fine", Math.max(rows, columns) > state.size);
    image.alt = `field of ${rows} by ${columns}`;
    scale.hidden = !state.limits;
    if (state.limits) {
      low.textContent = state.limits[0];
      high.textContent = state.limits[1];
      ramp.style.background = `linear-gradient(to right, ${state.ramp.join(", ")})`;
      high.title = state.not_finite ? `${state.not_finite} values are not finite (green)` : "";
    }
    if (shownSpeed !== (shownSpeed = String(state.speed))) {
      const offered = [...new Set([...SPEEDS, state.speed])].filter((s) => s > 0).sort((a, b) => a - b);
      speed.replaceChildren();
      for (const value of [...offered, 0])
        make("option", "", speed, { value, textContent: value ? `${value} steps/s` : "full speed" });
      speed.value = shownSpeed;
    }
    const asText = JSON.stringify(state.kernels), errorText = JSON.stringify(state.error);
    if (shownKernels !== (shownKernels = asText))
      showKernels(kernels, state.kernels, (id, version) => say("roll back", { id, version }));
    if (shownError !== (shownError = errorText)) showError(wrong, state.error);
  }

  let url = "";
  function showPicture() {
    const bytes = model.get("picture"), frame = model.get("frame");
    if (!bytes?.byteLength) return;
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
    image.onload = image.onerror = () => say("took", { frame });
    image.dataset.frame = frame;
    image.src = url;
  }

  model.on("change:state", showState);
  model.on("change:frame", showPicture);
  showState();
  showPicture();
  say("show");
  return () => {
    model.off("change:state", showState);
    model.off("change:frame", showPicture);
    URL.revokeObjectURL(url);
    say("hide");
  };
}

export default { render };
