"use strict";
// Log texts are shown with textContent only. Sentence offsets are passed through, never computed here.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const WORDS = {supported: "Supported", unsupported: "Not supported", unsure: "Unsure", skip: "Skipped"};
const SAVED = ["supported", "unsupported", "unsure"];
const STORAGE_PREFIX = `ragassay review ${JSON.stringify(data.output)} `;
const FOLD_LENGTH = 2500;
const MAX_UNDO = 200;

const items = {sentences: [], responses: []};
const byId = new Map();
data.rows.forEach((row, number) => {
  items.responses.push(makeItem("responses", number, null));
  for (const part of row.parts) if (typeof part !== "string") items.sentences.push(makeItem("sentences", number, part));
});

let reviewer = "";
let state = newState();
let index = 0;
let shown = -1; // number of the row on the page
let spans = new Map(); // sentence -> its element
let passages = [];
let isStored = true; // whether the browser stores the labels

function makeItem(level, number, part) {
  const row = data.rows[number];
  const made = {level, number, part, id: identify({...row, start: part?.start, end: part?.end})};
  byId.set(made.id, made);
  return made;
}

function identify(record) {
  return JSON.stringify([record.partition ?? null, record.row_id, record.start ?? null, record.end ?? null]);
}

function newState() {
  return {labels: {}, undo: [], dirty: false, folded: false, first: data.level, level: data.level, at: {}};
}

function currentItems() { return items[state.level]; }
function currentItem() { return currentItems()[index]; }

// Storage in the browser

function storageKey() { return `${STORAGE_PREFIX}${data.sample} ${reviewer}`; }

function loadState(key) {
  try {
    const value = JSON.parse(localStorage.getItem(key));
    return value && typeof value.labels === "object" ? {...newState(), ...value} : null;
  } catch { return null; }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch { return false; }
}

function storeState() {
  if (currentItem()) state.at[state.level] = currentItem().id;
  isStored = store(storageKey(), JSON.stringify(state));
  if (!isStored) showNotice("This browser can't store labels: save before you close or reload the page.");
}

function unsavedSamples() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(STORAGE_PREFIX) && key !== storageKey())
      .filter((key) => key.slice(STORAGE_PREFIX.length).replace(/^\S* /, "") === reviewer && loadState(key)?.dirty);
  } catch { return []; }
}

function startReview(name) {
  reviewer = name;
  store("ragassay reviewer", name);
  state = loadState(storageKey()) ?? newState();
  if (state.first !== data.level) state = {...state, first: data.level, level: data.level}; // the page was made again with another level
  openLevel(state.level);
  const unsavedCount = unsavedSamples().flatMap((key) => listRecords(loadState(key))).length;
  $("unsaved-samples").hidden = !unsavedCount;
  $("unsaved-samples").firstElementChild.textContent = `${countLabels(unsavedCount)} of another sample of this output are in this browser, not saved.`;
}

// Display

function makeElement(name, text, properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  made.textContent = text;
  return made;
}

function showItem() {
  const item = currentItem();
  $("level").firstChild.data = state.level === "sentences" ? "Label responses" : "Label sentences";
  if (item && item.number !== shown) showRow(item.number);
  for (const [part, span] of spans) {
    span.classList.toggle("current", part === item?.part);
    if (part === item?.part) span.setAttribute("aria-current", "true"); else span.removeAttribute("aria-current");
  }
  $("response").classList.toggle("current", item !== undefined && item.part === null);
  hideVerdict();
  showLabels();
  showCounts();
  $("current-item").textContent = item ? `${noun(1)} ${index + 1}${item.part ? `: ${item.part.text}` : ""}` : "";
  spans.get(item?.part)?.scrollIntoView({block: "nearest"});
}

function showRow(number) {
  const row = data.rows[number];
  shown = number;
  $("position").textContent = `Response ${number + 1} of ${data.rows.length}`;
  $("question").textContent = row.question;
  spans = new Map();
  $("response").replaceChildren(...row.parts.map((part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const span = makeElement("span", part.text, {className: "sentence"});
    span.addEventListener("click", () => goTo(identify({...row, ...part}), "sentences"));
    spans.set(part, span);
    return span;
  }));
  passages = row.context.map((text, i) => makePassage(text, i, row.context.length));
  $("context").replaceChildren(...passages);
  scrollTo(0, 0);
}

function makePassage(text, number, count) {
  const box = makeElement("div", "", {className: "passage"});
  box.append(makeElement("p", `Passage ${number + 1} of ${count}${text.trim() ? "" : ", empty"}`, {className: "note"}));
  box.append(makeElement("p", text, {className: "text", dir: "auto"}));
  if (text.length > FOLD_LENGTH) {
    const button = makeElement("button", "", {type: "button"});
    button.addEventListener("click", () => fold(box, !box.classList.contains("folded")));
    box.append(button);
    fold(box, state.folded);
  }
  return box;
}

function fold(box, folded) {
  const button = box.querySelector("button");
  if (!button) return;
  box.classList.toggle("folded", folded);
  button.setAttribute("aria-expanded", String(!folded));
  button.textContent = folded ? "Show all" : "Fold";
}

function foldAll() {
  state.folded = !state.folded;
  for (const box of passages) fold(box, state.folded);
  storeState();
}

function showLabels() {
  const row = data.rows[shown];
  for (const [part, span] of spans) showLabel(span, state.labels[identify({...row, ...part})]);
  if (row) showLabel($("response"), state.labels[identify(row)]);
  const own = currentItem() && state.labels[currentItem().id];
  for (const label of [...SAVED, "skip"]) $(label).setAttribute("aria-pressed", String(own?.label === label));
}

function showLabel(target, record) {
  if (record) target.dataset.label = record.label; else delete target.dataset.label;
}

function countLabels(count) { return count === 1 ? "1 label" : `${count} labels`; }

function noun(count) {
  return {sentences: ["Sentence", "sentences"], responses: ["Response", "responses"]}[state.level][count === 1 ? 0 : 1];
}

function showCounts() {
  const labels = currentItems().map((item) => state.labels[item.id]?.label).filter(Boolean);
  const skipped = labels.filter((label) => label === "skip").length;
  const otherLabels = items[state.level === "sentences" ? "responses" : "sentences"].filter((item) => SAVED.includes(state.labels[item.id]?.label)).length;
  $("bar").max = Math.max(currentItems().length, 1);
  $("bar").value = labels.length;
  $("progress").textContent = `${labels.length - skipped} of ${currentItems().length} ${noun(2)} labeled`
    + (skipped ? `, ${skipped} skipped` : "")
    + (otherLabels ? `, and ${otherLabels} ${state.level === "sentences" ? "whole response" : "sentence"}${otherLabels === 1 ? "" : "s"}` : "") + ".";
  $("unsaved").textContent = state.dirty ? "Not saved yet." : listRecords(state).length ? "All saved." : "";
  $("reviewer").textContent = reviewer || "No name";
  $("reviewer").setAttribute("aria-label", `Reviewer: ${reviewer || "none"}`);
}

function hideVerdict() {
  $("verdict").hidden = true;
  $("reveal").setAttribute("aria-expanded", "false");
  $("near").disabled = !currentItem()?.part;
  for (const box of passages) unhighlight(box);
}

function reveal() {
  if (!currentItem()) return;
  const {number, part} = currentItem();
  const row = data.rows[number]; // the id is hidden until then, because it may reveal the label
  $("verdict").textContent = `The response: ${row.verdict}.` + (part ? ` This sentence: ${part.score}.` : "")
    + ` Row ${[row.name, row.partition_name].filter(Boolean).join(", ")}.`;
  $("verdict").hidden = !$("verdict").hidden;
  $("reveal").setAttribute("aria-expanded", String(!$("verdict").hidden));
  $("verdict").scrollIntoView({block: "nearest"});
}

function showNearest() {
  if (!currentItem()?.part) return;
  if (passages.some((box) => box.classList.contains("highlighted"))) { passages.forEach(unhighlight); return; }
  if (!currentItem().part.near) { showMessage("No passage contains any of its words."); return; }
  const [number, from, to] = currentItem().part.near;
  const box = passages[number];
  box.classList.add("highlighted");
  fold(box, false);
  const text = box.querySelector(".text");
  const whole = text.textContent;
  if (to > from) text.replaceChildren(whole.slice(0, from), makeElement("mark", whole.slice(from, to)), whole.slice(to));
  (text.querySelector("mark") ?? box).scrollIntoView({block: "center"});
}

function unhighlight(box) {
  if (!box.classList.contains("highlighted")) return;
  box.classList.remove("highlighted");
  const text = box.querySelector(".text");
  text.replaceChildren(text.textContent);
  fold(box, state.folded);
}

function showMessage(text) { $("message").textContent = text; }

function showNotice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

// Navigation

function openLevel(level) {
  state.level = level;
  const at = currentItems().findIndex((item) => item.id === state.at[level]);
  index = Math.max(at, 0);
  shown = -1;
  showItem();
}

function switchLevel() {
  const row = currentItem()?.number;
  state.level = state.level === "sentences" ? "responses" : "sentences";
  const itemsOfRow = currentItems().filter((item) => item.number === row);
  index = Math.max(currentItems().indexOf(itemsOfRow.find((item) => !state.labels[item.id]) ?? itemsOfRow[0]), 0);
  showMessage("");
  showItem();
  $("response-title").scrollIntoView({block: "nearest"});
  storeState();
}

function goTo(id, level) {
  state.level = level;
  index = Math.max(currentItems().findIndex((item) => item.id === id), 0);
  showItem();
  storeState();
}

function step(by) {
  const to = index + by;
  showMessage(to < 0 ? "This is the first." : to >= currentItems().length ? "This is the last." : "");
  index = Math.min(Math.max(to, 0), Math.max(currentItems().length - 1, 0));
  showItem();
  storeState();
}

function nextUnlabeled() {
  const count = currentItems().length;
  for (let k = 1; k <= count; k += 1) {
    const at = (index + k) % count;
    if (!state.labels[currentItems()[at].id]) return at;
  }
  return -1;
}

// Labels

function makeRecord({number, part}, label, reviewedBy, at) {
  const {row_id, partition, stratum, inclusion_probability} = data.rows[number];
  return {
    row_id, ...(partition && {partition}), ...(part && {start: part.start, end: part.end}), label, reviewer: reviewedBy, at,
    ...(stratum && {stratum}), inclusion_probability,
  };
}

function setLabel(label) {
  const item = currentItem();
  if (!item) return;
  const before = state.labels[item.id] ?? null;
  state.undo = [...state.undo, [state.level, item.id, before]].slice(-MAX_UNDO);
  state.labels[item.id] = makeRecord(item, label, reviewer, new Date().toISOString().replace(/\.\d+Z$/, "Z"));
  state.dirty ||= label !== "skip" || SAVED.includes(before?.label);
  const open = nextUnlabeled();
  showMessage(`${WORDS[label]}.` + (open < 0 ? ` All ${noun(2)} are done: save.` : ""));
  if (open >= 0) index = open;
  showItem();
  storeState();
}

function undo() {
  const last = state.undo.pop();
  if (!last) { showMessage("Nothing to undo."); return; }
  const [level, id, before] = last;
  state.dirty ||= SAVED.includes(state.labels[id]?.label) || SAVED.includes(before?.label);
  if (before) state.labels[id] = before; else delete state.labels[id];
  showMessage("Undone.");
  goTo(id, level);
}

// Files

function listRecords(saved) {
  return [...items.sentences, ...items.responses].map((item) => saved.labels[item.id])
    .concat(Object.entries(saved.labels).filter(([id]) => !byId.has(id)).map(([, record]) => record))
    .filter((record) => SAVED.includes(record?.label));
}

function download(records, suffix) {
  const name = [data.output.split("/").pop(), reviewer, suffix].filter(Boolean).map((part) => part.replace(/[^\p{L}\p{N}_.-]+/gu, "-"));
  const link = makeElement("a", "", {
    href: URL.createObjectURL(new Blob(records.map((record) => `${JSON.stringify(record)}\n`), {type: "application/jsonl"})),
    download: `review-${name.join("-")}.jsonl`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return link.download;
}

function save() {
  const records = listRecords(state);
  if (!records.length) { showMessage("There is no label to save."); return; }
  showMessage(`${countLabels(records.length)} saved as ${download(records, "")}.`);
  state.dirty = false;
  storeState();
  showCounts();
}

function rescue() {
  const keys = unsavedSamples();
  download(keys.flatMap((key) => listRecords(loadState(key))), "earlier");
  for (const key of keys) store(key, JSON.stringify({...loadState(key), dirty: false}));
  $("unsaved-samples").hidden = true;
}

function parseFile(text) {
  const records = [];
  for (const [number, line] of text.replace(/^\ufeff/, "").split("\n").entries()) {
    if (!line.trim()) continue;
    let record = null;
    try { record = JSON.parse(line); } catch { /* reported below */ }
    const isLabel = typeof record?.row_id === "string" && SAVED.includes(record.label) && typeof record.reviewer === "string"
      && record.reviewer && !Number.isNaN(Date.parse(record.at));
    if (!isLabel) throw new Error(`line ${number + 1} is not a label of a review`);
    records.push(record);
  }
  const names = [...new Set(records.map((record) => record.reviewer))];
  if (!records.length) throw new Error("it contains no label");
  if (names.length > 1) throw new Error(`it contains labels of ${names.join(" and ")}: load a file of one reviewer`);
  return records;
}

async function load(file) {
  let records = [];
  try { records = parseFile(await file.text()); } catch (error) {
    showNotice(`${file.name} was not loaded: ${error.message}.`);
    return;
  }
  showNotice("");
  if (records[0].reviewer !== reviewer) startReview(records[0].reviewer);
  let added = 0, unmatched = 0;
  for (const record of records) {
    const item = byId.get(identify(record));
    const own = item && state.labels[item.id];
    if (!item) unmatched += 1;
    else if (!SAVED.includes(own?.label) || Date.parse(record.at) > Date.parse(own.at)) {
      state.labels[item.id] = makeRecord(item, record.label, record.reviewer, record.at);
      added += 1;
    }
  }
  state.undo = [];
  state.dirty ||= added > 0;
  const open = nextUnlabeled();
  if (currentItem() && state.labels[currentItem().id] && open >= 0) index = open;
  showMessage(`${countLabels(added)} of ${reviewer} loaded.` + (unmatched ? ` Not in this sample: ${unmatched}.` : ""));
  showItem();
  storeState();
}

// Keys and buttons

function confirmName() {
  const name = $("name").value.trim().normalize("NFC");
  if (!name) { $("name").focus(); return; }
  if (name !== reviewer) { showMessage(""); startReview(name); }
  $("ask").close();
}

function askName() {
  $("name").value = reviewer;
  $("ask").showModal();
  $("name").focus();
}

const ACTIONS = {
  supported: () => setLabel("supported"), unsupported: () => setLabel("unsupported"), unsure: () => setLabel("unsure"), skip: () => setLabel("skip"),
  previous: () => step(-1), next: () => step(1), undo, near: showNearest, reveal, unfold: foldAll, level: switchLevel,
  save, rescue, begin: confirmName, reviewer: askName, load: () => $("file").click(),
};
const KEYS = {
  1: "supported", y: "supported", 2: "unsupported", n: "unsupported", 3: "unsure", u: "unsure", s: "skip", z: "undo",
  j: "next", arrowright: "next", k: "previous", arrowleft: "previous", p: "near", o: "unfold", v: "reveal", w: "level",
};
const NO_REPEAT = ["supported", "unsupported", "unsure", "skip", "level"]; // ignored while a key is held down

function handleKey(event) {
  const pressed = (event.key ?? "").toLowerCase(); // form autofill sends events without a key
  if ($("ask").open) {
    if (pressed === "enter" && event.target === $("name") && !event.isComposing) confirmName();
    return;
  }
  // With a non-Latin keyboard, or one on which digits need shift, the physical key counts.
  const [, keyName] = event.code?.match(pressed > "\x7f" ? /^(?:Digit|Key)(.)$/ : /^Digit(.)$/) ?? [];
  const action = event.ctrlKey || event.metaKey ? {s: "save", z: "undo"}[pressed] : KEYS[pressed] ?? KEYS[keyName?.toLowerCase()];
  if (!action || event.altKey || event.isComposing) return;
  event.preventDefault();
  if (!(event.repeat && NO_REPEAT.includes(action))) ACTIONS[action]();
}

for (const [id, action] of Object.entries(ACTIONS)) $(id)?.addEventListener("click", action);
document.addEventListener("keydown", handleKey);
$("ask").addEventListener("close", () => { if (!reviewer) askName(); });
$("file").addEventListener("change", async () => {
  if ($("file").files.length) await load($("file").files[0]);
  $("file").value = "";
});
addEventListener("beforeunload", (event) => { if (state.dirty && !isStored) event.preventDefault(); });
addEventListener("storage", (event) => {
  if (event.key !== storageKey() || !event.newValue) return;
  state = {...JSON.parse(event.newValue), level: state.level, at: state.at}; // changed in another window
  showItem();
});

if (matchMedia("(max-width: 50rem)").matches) $("guidelines").open = false;
let known = "";
try { known = localStorage.getItem("ragassay reviewer") ?? ""; } catch { /* the page asks for it */ }
if (known) startReview(known); else { showItem(); askName(); }
