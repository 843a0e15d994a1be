// Roles: shares, weights, quotas and allocations, as a list and for one role.

import { html } from "./vendor/preact-htm.js";
import { amount, amounts, amountsText, count, number, percent, quantities } from "./format.js";
import { link, setQuery, useRoute } from "./route.js";
import { Table, shown } from "./table.js";
import { Answer, Bar, Empty, Facts, Filter, Heading, Section, useAnswer, useStore } from "./ui.js";

/** One row for each role, from all answers about roles. */
function rolesOf(roles, quota, fairness) {
  const configs = new Map((quota?.status?.configs ?? []).map((config) => [config.role, config]));
  const shares = new Map((fairness?.roles ?? []).map((role) => [role.role, role]));
  return roles.map((role) => ({
    name: role.name,
    weight: role.weight,
    frameworks: (role.frameworks ?? []).map((id) => id.value),
    allocated: amounts(role.resources),
    guarantee: quantities(configs.get(role.name)?.guarantees),
    limit: quantities(configs.get(role.name)?.limits),
    share: shares.get(role.name)?.share,
    fair: shares.get(role.name)?.fair_share,
  }));
}

const COLUMNS = [
  {
    name: "name",
    title: "Role",
    value: (role) => role.name,
    cell: (role) => html`<a href=${link("roles", role.name)}>${role.name}</a>`,
  },
  {
    name: "share",
    title: "Share",
    bars: true,
    numeric: true,
    value: (role) => role.share ?? 0,
    cell: (role) =>
      role.share !== undefined &&
      html`<div class="use">
      <${Bar} share=${role.share} mark=${role.fair} label="share ${percent(role.share)}, fair ${percent(role.fair)}" />
      <span>${percent(role.share)}</span></div>`,
  },
  {
    name: "fair",
    title: "Fair",
    width: "5.5rem",
    numeric: true,
    minor: true,
    value: (role) => role.fair ?? 0,
    cell: (role) => percent(role.fair),
  },
  {
    name: "weight",
    title: "Weight",
    width: "5rem",
    numeric: true,
    minor: true,
    value: (role) => role.weight,
    cell: (role) => number(role.weight),
  },
  {
    name: "frameworks",
    title: "Frameworks",
    width: "8rem",
    numeric: true,
    minor: true,
    value: (role) => role.frameworks.length,
    cell: (role) => count(role.frameworks.length),
  },
  {
    name: "allocated",
    title: "Allocated and offered",
    width: "17%",
    minor: true,
    cell: (role) => html`<span
    title=${amountsText(role.allocated)}>${amountsText(role.allocated)}</span>`,
  },
  {
    name: "guarantee",
    title: "Guarantee",
    width: "13%",
    minor: true,
    cell: (role) => html`<span
    title=${amountsText(role.guarantee)}>${amountsText(role.guarantee)}</span>`,
  },
  {
    name: "limit",
    title: "Limit",
    width: "13%",
    minor: true,
    cell: (role) => html`<span
    title=${amountsText(role.limit)}>${amountsText(role.limit)}</span>`,
  },
];

/** All roles, once GET_ROLES has been answered. Users who may not see quotas or fairness see the rest. */
function Roles({ children }) {
  const [roles, quota, fairness] = ["GET_ROLES", "GET_QUOTA", "GET_FAIRNESS"].map((type) => useAnswer(type));
  const rows = (data) => children(rolesOf(data.roles ?? [], quota.data, fairness.data));
  return html`<${Answer} answer=${roles}>${rows}<//>`;
}

export function RolesPage({ segments }) {
  const text = useRoute().query.get("q") ?? "";
  // A role's name may contain slashes.
  if (segments.length > 0) return html`<${RolePage} name=${segments.join("/")} />`;
  return html`<${Roles}>${(roles) => {
    const rows = roles.filter((role) => role.name.toLowerCase().includes(text.toLowerCase()));
    return html`<${Heading} title="Roles"><span class="count">${shown(rows.length, roles.length)}</span>
        <${Filter} label="Filter by name" value=${text} onInput=${(value) => setQuery("q", value)} /><//>
      <${Table} label="Roles" columns=${COLUMNS} rows=${rows} rowKey=${(role) => role.name}
        sort=${{ name: "share", descending: true }} empty="No role matches the filter." />`;
  }}<//>`;
}

/** A quantity beside its guarantee and its limit. */
function quotaRows({ allocated, guarantee, limit }) {
  return [...new Set([...Object.keys(guarantee), ...Object.keys(limit)])].map((name) => ({
    name,
    values: [allocated[name] ?? 0, guarantee[name], limit[name]],
  }));
}

function RolePage({ name }) {
  const store = useStore();
  const above = html`<a href="#/roles">Roles</a>`;
  return html`<${Roles}>${(roles) => {
    const role = roles.find((one) => one.name === name);
    if (!role) return html`<${Heading} title=${name} above=${above} /><${Empty}>There is no such role.<//>`;
    const inside = roles.filter((one) => one.name.startsWith(`${name}/`));
    const quota = quotaRows(role);
    return html`<${Heading} title=${name} above=${above} />
      <${Section} title="About"><${Facts} facts=${[
        ["weight", number(role.weight)],
        ["dominant share", percent(role.share)],
        ["fair share", percent(role.fair)],
        ["allocated and offered", amountsText(role.allocated)],
        [
          "roles below it",
          inside.length > 0 && inside.map((one) => html`<a href=${link("roles", one.name)}>${one.name}</a> `),
        ],
      ].filter(([, value]) => value)} /><//>
      <${Section} title="Quota">${
        quota.length === 0
          ? html`<${Empty}>The role has no quota.<//>`
          : html`
        <${Table} label="Quota" rows=${quota} rowKey=${(row) => row.name} columns=${[
          "Resource",
          "Held",
          "Guarantee",
          "Limit",
        ].map((title, index) => ({
          name: title,
          title,
          numeric: index > 0,
          cell: (row) => (index === 0 ? row.name : amount(row.name, row.values[index - 1])),
        }))} />`
      }<//>
      <${Section} title="Frameworks" note=${count(role.frameworks.length)}>${
        role.frameworks.length === 0
          ? html`<${Empty}>No framework has subscribed to this role.<//>`
          : html`<ul>${role.frameworks.map(
              (id) => html`
            <li><a href=${link("frameworks", id)}>${store.frameworkName(id)}</a></li>`,
            )}</ul>`
      }<//>`;
  }}<//>`;
}
