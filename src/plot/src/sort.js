for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const key = (row, n) => row.cells[n].dataset.key ?? row.cells[n].textContent;
  heads.forEach((head, n) => {
    if (head.classList.contains("still")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const [x, y] = [key(a, n), key(b, n)], order = x - y;
        return (up ? 1 : -1) * (Number.isNaN(order) ? String(x).localeCompare(String(y)) : order);
      });
      table.tBodies[0].append(...rows);
    });
  });
}
