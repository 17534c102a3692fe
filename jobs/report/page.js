"use strict";
const articles = [...document.querySelectorAll("article")];
const search = document.getElementById("search");
const selects = [...document.querySelectorAll(".filters select")];
const shown = document.getElementById("shown");
const more = document.getElementById("more");

function filter() {
  const words = search.value.toLowerCase();
  let count = 0;
  for (const article of articles) {
    const matches = article.textContent.toLowerCase().includes(words)
      && selects.every((select) => select.value === "" || article.dataset[select.name] === select.value.slice(1));
    article.hidden = !matches;
    count += matches ? 1 : 0;
  }
  shown.textContent = String(count);
  if (more && (words || selects.some((select) => select.value !== ""))) more.open = true;
}

function highlightPassage(sentence, on) {
  const passages = sentence.closest("article").querySelectorAll(".passage");
  for (const passage of passages) passage.classList.toggle("near", on && passage.dataset.number === sentence.dataset.passage);
}

function unfoldPassage(sentence) {
  const passage = sentence.closest("article").querySelector(".passage.near");
  const folded = passage && passage.closest("details:not(#more)");
  if (folded) folded.open = true;
}

if (search) {
  search.addEventListener("input", filter);
  for (const select of selects) select.addEventListener("change", filter);
  for (const sentence of document.querySelectorAll(".sentence")) {
    for (const event of ["mouseenter", "focus"]) sentence.addEventListener(event, () => highlightPassage(sentence, true));
    for (const event of ["mouseleave", "blur"]) sentence.addEventListener(event, () => highlightPassage(sentence, false));
    sentence.addEventListener("click", () => unfoldPassage(sentence));
  }
}

for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", () => {
    const target = document.querySelector(link.hash);
    if (target.tagName === "DETAILS") target.open = true;
  });
}
