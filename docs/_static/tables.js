// Filters the tables of a page. A page asks for it by `:::{filter}`, which leaves an empty element here.
//
// A row stays where each word of the filter is in one of its cells or in the heading of its section. Sections without
// such a row are hidden. The filter is kept in the address (`?filter=shuffle`), so that one can link to its result.
"use strict";

function makeFilter(place) {
  const rows = [...document.querySelectorAll("article table tbody tr")].map((row) => ({
    row,
    section: row.closest("section"),
    text: `${row.closest("section").querySelector("h2, h3")?.textContent ?? ""} ${row.textContent}`.toLowerCase(),
  }));
  const sections = new Set(rows.map(({ section }) => section));

  const label = document.createElement("label");
  label.textContent = "Filter the tables of this page: ";
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "words, such as: shuffle vector";
  label.append(input);
  const count = document.createElement("output");
  place.append(label, count);

  function update() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = new Set();
    let number = 0;
    for (const { row, section, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) {
        number += 1;
        shown.add(section);
      }
    }
    for (const section of sections) {
      section.hidden = words.length > 0 && !shown.has(section);
    }
    count.textContent = `${number} of ${rows.length} rows`;
    const address = new URL(location.href);
    if (words.length > 0) {
      address.searchParams.set("filter", words.join(" "));
    } else {
      address.searchParams.delete("filter");
    }
    history.replaceState(null, "", address);
  }

  input.value = new URL(location.href).searchParams.get("filter") ?? "";
  input.addEventListener("input", update);
  update();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".kiln-filter").forEach(makeFilter);
});
