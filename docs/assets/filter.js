// A field above each long table: rows that hold all of its words stay.
const kLongTable = 20; // rows
const prepare = () => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < kLongTable || table.dataset.filtered) continue;
    table.dataset.filtered = "yes";
    const field = document.createElement("input");
    field.type = "search";
    field.className = "table-filter";
    field.placeholder = `filter ${rows.length} rows`;
    field.setAttribute("aria-label", field.placeholder);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    (table.closest(".md-typeset__scrollwrap") ?? table).before(field);
  }
};
document.addEventListener("DOMContentLoaded", prepare);
