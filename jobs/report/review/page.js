"use strict";
// Texts of logs reach the page by textContent alone. Places of sentences are carried as they came, never counted here.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const WORDS = {supported: "Supported", unsupported: "Not supported", unsure: "Unsure", skip: "Skipped"};
const SAVED = ["supported", "unsupported", "unsure"];
const OURS = `ragassay review ${JSON.stringify(data.output)} `;
const LONG = 2500;
const UNDOS = 200;

const items = {sentences: [], responses: []};
const byId = new Map();
data.rows.forEach((row, number) => {
  items.responses.push(item("responses", number, null));
  for (const part of row.parts) if (typeof part !== "string") items.sentences.push(item("sentences", number, part));
});

let reviewer = "";
let state = fresh();
let index = 0;
let shown = -1; // number of the row that the page shows
let spans = new Map(); // sentence -> its element
let passages = [];
let kept = true; // whether the browser keeps what is done

function item(level, number, part) {
  const row = data.rows[number];
  const made = {level, number, part, id: identity({...row, start: part?.start, end: part?.end})};
  byId.set(made.id, made);
  return made;
}

function identity(of) {
  return JSON.stringify([of.partition ?? null, of.row_id, of.start ?? null, of.end ?? null]);
}

function fresh() {
  return {labels: {}, undo: [], dirty: false, folded: false, first: data.level, level: data.level, at: {}};
}

function list() { return items[state.level]; }
function now() { return list()[index]; }

// What the browser keeps

function place() { return `${OURS}${data.sample} ${reviewer}`; }

function stored(key) {
  try {
    const found = JSON.parse(localStorage.getItem(key));
    return found && typeof found.labels === "object" ? {...fresh(), ...found} : null;
  } catch { return null; }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch { return false; }
}

function keep() {
  if (now()) state.at[state.level] = now().id;
  kept = store(place(), JSON.stringify(state));
  if (!kept) warn("This browser keeps nothing: save before you close or reload the page.");
}

function earlier() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(OURS) && key !== place())
      .filter((key) => key.slice(OURS.length).replace(/^\S* /, "") === reviewer && stored(key)?.dirty);
  } catch { return []; }
}

function start(name) {
  reviewer = name;
  store("ragassay reviewer", name);
  state = stored(place()) ?? fresh();
  if (state.first !== data.level) state = {...state, first: data.level, level: data.level}; // the page was asked for anew
  turnTo(state.level);
  const left = earlier().flatMap((key) => lines(stored(key))).length;
  $("kept").hidden = !left;
  $("kept").firstElementChild.textContent = `${labels(left)} of another sample of this output kept in this browser, and not saved.`;
}

// What is shown

function element(name, text, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  made.textContent = text;
  return made;
}

function show() {
  const item = now();
  $("level").firstChild.data = state.level === "sentences" ? "Responses" : "Sentences";
  if (item && item.number !== shown) showRow(item.number);
  for (const [part, span] of spans) {
    span.classList.toggle("now", part === item?.part);
    if (part === item?.part) span.setAttribute("aria-current", "true"); else span.removeAttribute("aria-current");
  }
  $("response").classList.toggle("now", item !== undefined && item.part === null);
  hide();
  marks();
  counts();
  $("now").textContent = item ? `${noun(1)} ${index + 1}${item.part ? `: ${item.part.text}` : ""}` : "";
  spans.get(item?.part)?.scrollIntoView({block: "nearest"});
}

function showRow(number) {
  const row = data.rows[number];
  shown = number;
  $("place").textContent = `Response ${number + 1} of ${data.rows.length}`;
  $("question").textContent = row.question;
  spans = new Map();
  $("response").replaceChildren(...row.parts.map((part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const span = element("span", part.text, {className: "sentence"});
    span.addEventListener("click", () => goTo(identity({...row, ...part}), "sentences"));
    spans.set(part, span);
    return span;
  }));
  passages = row.context.map((text, i) => passage(text, i, row.context.length));
  $("context").replaceChildren(...passages);
  scrollTo(0, 0);
}

function passage(text, number, of) {
  const box = element("div", "", {className: "passage"});
  box.append(element("p", `Passage ${number + 1} of ${of}${text.trim() ? "" : ", empty"}`, {className: "note"}));
  box.append(element("p", text, {className: "text", dir: "auto"}));
  if (text.length > LONG) {
    const button = element("button", "", {type: "button"});
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
  button.textContent = folded ? "Show all of it" : "Fold";
}

function foldAll() {
  state.folded = !state.folded;
  for (const box of passages) fold(box, state.folded);
  keep();
}

function marks() {
  const row = data.rows[shown];
  for (const [part, span] of spans) mark(span, state.labels[identity({...row, ...part})]);
  if (row) mark($("response"), state.labels[identity(row)]);
  const mine = now() && state.labels[now().id];
  for (const label of [...SAVED, "skip"]) $(label).setAttribute("aria-pressed", String(mine?.label === label));
}

function mark(where, said) {
  if (said) where.dataset.label = said.label; else delete where.dataset.label;
}

function labels(count) { return count === 1 ? "1 label" : `${count} labels`; }

function noun(count) {
  return {sentences: ["Sentence", "sentences"], responses: ["Response", "responses"]}[state.level][count === 1 ? 0 : 1];
}

function counts() {
  const said = list().map((item) => state.labels[item.id]?.label).filter(Boolean);
  const skipped = said.filter((label) => label === "skip").length;
  const other = items[state.level === "sentences" ? "responses" : "sentences"].filter((item) => SAVED.includes(state.labels[item.id]?.label)).length;
  $("bar").max = Math.max(list().length, 1);
  $("bar").value = said.length;
  $("progress").textContent = `${said.length - skipped} of ${list().length} ${noun(2)} labelled`
    + (skipped ? `, ${skipped} skipped` : "")
    + (other ? `, and ${other} ${state.level === "sentences" ? "whole response" : "sentence"}${other === 1 ? "" : "s"}` : "") + ".";
  $("unsaved").textContent = state.dirty ? "Not saved yet." : lines(state).length ? "All saved." : "";
  $("who").textContent = reviewer || "…";
}

function hide() {
  $("verdict").hidden = true;
  $("reveal").setAttribute("aria-expanded", "false");
  $("near").disabled = !now()?.part;
  for (const box of passages) dim(box);
}

function reveal() {
  if (!now()) return;
  const {number, part} = now();
  const row = data.rows[number]; // an id may tell what the answer is, too
  $("verdict").textContent = `The response: ${row.verdict}.` + (part ? ` This sentence: score ${part.score}.` : "")
    + ` Row ${[row.name, row.place].filter(Boolean).join(", ")}.`;
  $("verdict").hidden = !$("verdict").hidden;
  $("reveal").setAttribute("aria-expanded", String(!$("verdict").hidden));
  $("verdict").scrollIntoView({block: "nearest"});
}

function near() {
  if (!now()?.part) return;
  if (passages.some((box) => box.classList.contains("lit"))) { passages.forEach(dim); return; }
  if (!now().part.near) { say("No passage has any of its words."); return; }
  const [number, from, to] = now().part.near;
  const box = passages[number];
  box.classList.add("lit");
  fold(box, false);
  const text = box.querySelector(".text");
  const whole = text.textContent;
  if (to > from) text.replaceChildren(whole.slice(0, from), element("mark", whole.slice(from, to)), whole.slice(to));
  (text.querySelector("mark") ?? box).scrollIntoView({block: "center"});
}

function dim(box) {
  if (!box.classList.contains("lit")) return;
  box.classList.remove("lit");
  const text = box.querySelector(".text");
  text.replaceChildren(text.textContent);
  fold(box, state.folded);
}

function say(text) { $("what").textContent = text; }

function warn(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

// Ways through the sample

function turnTo(level) {
  state.level = level;
  const at = list().findIndex((item) => item.id === state.at[level]);
  index = Math.max(at, 0);
  shown = -1;
  show();
}

function turn() {
  const row = now()?.number;
  state.level = state.level === "sentences" ? "responses" : "sentences";
  const mine = list().filter((item) => item.number === row);
  index = Math.max(list().indexOf(mine.find((item) => !state.labels[item.id]) ?? mine[0]), 0);
  say("");
  show();
  $("response-title").scrollIntoView({block: "nearest"});
  keep();
}

function goTo(id, level) {
  state.level = level;
  index = Math.max(list().findIndex((item) => item.id === id), 0);
  show();
  keep();
}

function step(by) {
  const to = index + by;
  say(to < 0 ? "This is the first." : to >= list().length ? "This is the last." : "");
  index = Math.min(Math.max(to, 0), Math.max(list().length - 1, 0));
  show();
  keep();
}

function nextOpen() {
  const count = list().length;
  for (let k = 1; k <= count; k += 1) {
    const at = (index + k) % count;
    if (!state.labels[list()[at].id]) return at;
  }
  return -1;
}

// What is said

function record({number, part}, label, by, at) {
  const {row_id, partition, stratum, inclusion_probability} = data.rows[number];
  return {
    row_id, ...(partition && {partition}), ...(part && {start: part.start, end: part.end}), label, reviewer: by, at,
    ...(stratum && {stratum}), inclusion_probability,
  };
}

function label(what) {
  const item = now();
  if (!item) return;
  const before = state.labels[item.id] ?? null;
  state.undo = [...state.undo, [state.level, item.id, before]].slice(-UNDOS);
  state.labels[item.id] = record(item, what, reviewer, new Date().toISOString().replace(/\.\d+Z$/, "Z"));
  state.dirty ||= what !== "skip" || SAVED.includes(before?.label);
  const open = nextOpen();
  say(`${WORDS[what]}.` + (open < 0 ? ` All ${noun(2)} are done: save.` : ""));
  if (open >= 0) index = open;
  show();
  keep();
}

function undo() {
  const last = state.undo.pop();
  if (!last) { say("Nothing to undo."); return; }
  const [level, id, before] = last;
  state.dirty ||= SAVED.includes(state.labels[id]?.label) || SAVED.includes(before?.label);
  if (before) state.labels[id] = before; else delete state.labels[id];
  say("Undone.");
  goTo(id, level);
}

// Files

function lines(of) {
  return [...items.sentences, ...items.responses].map((item) => of.labels[item.id])
    .concat(Object.entries(of.labels).filter(([id]) => !byId.has(id)).map(([, said]) => said))
    .filter((said) => SAVED.includes(said?.label));
}

function download(records, more) {
  const name = [data.output.split("/").pop(), reviewer, more].filter(Boolean).map((part) => part.replace(/[^\p{L}\p{N}_.-]+/gu, "-"));
  const link = element("a", "", {
    href: URL.createObjectURL(new Blob(records.map((record) => `${JSON.stringify(record)}\n`), {type: "application/jsonl"})),
    download: `review-${name.join("-")}.jsonl`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return link.download;
}

function save() {
  const records = lines(state);
  if (!records.length) { say("There is no label to save."); return; }
  say(`${labels(records.length)} saved as ${download(records, "")}.`);
  state.dirty = false;
  keep();
  counts();
}

function rescue() {
  const keys = earlier();
  download(keys.flatMap((key) => lines(stored(key))), "earlier");
  for (const key of keys) store(key, JSON.stringify({...stored(key), dirty: false}));
  $("kept").hidden = true;
}

function parsed(text) {
  const found = [];
  for (const [number, line] of text.replace(/^\ufeff/, "").split("\n").entries()) {
    if (!line.trim()) continue;
    let said = null;
    try { said = JSON.parse(line); } catch { /* told of below */ }
    const good = typeof said?.row_id === "string" && SAVED.includes(said.label) && typeof said.reviewer === "string"
      && said.reviewer && !Number.isNaN(Date.parse(said.at));
    if (!good) throw new Error(`line ${number + 1} is no label of a review`);
    found.push(said);
  }
  const names = [...new Set(found.map((said) => said.reviewer))];
  if (!found.length) throw new Error("it holds no label");
  if (names.length > 1) throw new Error(`it holds labels of ${names.join(" and ")}, and one reviewer's can be gone on with`);
  return found;
}

async function load(file) {
  let found = [];
  try { found = parsed(await file.text()); } catch (error) {
    warn(`${file.name} was not loaded: ${error.message}.`);
    return;
  }
  warn("");
  if (found[0].reviewer !== reviewer) start(found[0].reviewer);
  let taken = 0, foreign = 0;
  for (const said of found) {
    const item = byId.get(identity(said));
    const mine = item && state.labels[item.id];
    if (!item) foreign += 1;
    else if (!SAVED.includes(mine?.label) || Date.parse(said.at) > Date.parse(mine.at)) {
      state.labels[item.id] = record(item, said.label, said.reviewer, said.at);
      taken += 1;
    }
  }
  state.undo = [];
  state.dirty ||= taken > 0;
  const open = nextOpen();
  if (now() && state.labels[now().id] && open >= 0) index = open;
  say(`${labels(taken)} of ${reviewer} loaded.` + (foreign ? ` Left out, since they are of no row of this sample: ${foreign}.` : ""));
  show();
  keep();
}

// Hands

function begin() {
  const name = $("name").value.trim().normalize("NFC");
  if (!name) { $("name").focus(); return; }
  if (name !== reviewer) { say(""); start(name); }
  $("ask").close();
}

function ask() {
  $("name").value = reviewer;
  $("ask").showModal();
  $("name").focus();
}

const ACTS = {
  supported: () => label("supported"), unsupported: () => label("unsupported"), unsure: () => label("unsure"), skip: () => label("skip"),
  previous: () => step(-1), next: () => step(1), undo, near, reveal, unfold: foldAll, level: turn, save, rescue, begin, who: ask, load: () => $("file").click(),
};
const KEYS = {
  1: "supported", y: "supported", 2: "unsupported", n: "unsupported", 3: "unsure", u: "unsure", s: "skip", z: "undo",
  j: "next", arrowright: "next", k: "previous", arrowleft: "previous", p: "near", o: "unfold", v: "reveal", w: "level",
};
const ONCE = ["supported", "unsupported", "unsure", "skip", "level"]; // not again and again while a key is held down

function key(event) {
  const pressed = (event.key ?? "").toLowerCase(); // what fills forms in by itself presses nothing
  if ($("ask").open) {
    if (pressed === "enter" && event.target === $("name") && !event.isComposing) begin();
    return;
  }
  // On a keyboard of another script, or where digits want the shift key, the place of the key counts.
  const [, there] = event.code?.match(pressed > "\x7f" ? /^(?:Digit|Key)(.)$/ : /^Digit(.)$/) ?? [];
  const act = event.ctrlKey || event.metaKey ? {s: "save", z: "undo"}[pressed] : KEYS[pressed] ?? KEYS[there?.toLowerCase()];
  if (!act || event.altKey || event.isComposing) return;
  event.preventDefault();
  if (!(event.repeat && ONCE.includes(act))) ACTS[act]();
}

for (const [id, act] of Object.entries(ACTS)) $(id)?.addEventListener("click", act);
document.addEventListener("keydown", key);
$("ask").addEventListener("close", () => { if (!reviewer) ask(); });
$("file").addEventListener("change", async () => {
  if ($("file").files.length) await load($("file").files[0]);
  $("file").value = "";
});
addEventListener("beforeunload", (event) => { if (state.dirty && !kept) event.preventDefault(); });
addEventListener("storage", (event) => {
  if (event.key !== place() || !event.newValue) return;
  state = {...JSON.parse(event.newValue), level: state.level, at: state.at}; // another window of this page
  show();
});

let known = "";
try { known = localStorage.getItem("ragassay reviewer") ?? ""; } catch { /* asked for below */ }
if (known) start(known); else { show(); ask(); }
