// Charts over time. The downloads have the same numbers.
"use strict";

(() => {
  const page = document.getElementById("trends");
  if (!page) return;
  const told = document.getElementById("trends-told");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const HEIGHT = 220;
  const DAY_S = 86_400;
  const HOUR_S = 3_600;
  const COLOURS = ["--main", "--bad", "--good"];
  const plots = [];
  let numbers = null;

  const { answered, colour } = memgraphShared;

  // Of a level its last value, of events their number.
  function summary(name, values) {
    const events = numbers.events.includes(name);
    const value = events ? values.reduce((sum, each) => sum + each, 0) : values[values.length - 1];
    return `${name}: ${value.toLocaleString("en")}${events ? " in total" : ""}`;
  }

  function draw() {
    for (const plot of plots.splice(0)) plot.destroy();
    const [from, to] = [numbers.times[0], numbers.times[numbers.times.length - 1]];
    const span = to - from;
    const time = span > HOUR_S ? "{HH}:{mm}" : "{HH}:{mm}:{ss}";
    const [ink, line] = [colour("--dim"), colour("--line")];
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    for (const frame of page.querySelectorAll("[data-chart]")) {
      const series = Object.entries(numbers.charts[frame.dataset.chart]);
      const latest = page.querySelector(`[data-latest="${frame.dataset.chart}"]`);
      if (!series.length) {
        latest.textContent = "Requires the audit permission.";
        continue;
      }
      latest.textContent = series.map(([name, values]) => summary(name, values)).join(", ");
      const options = {
        width: Math.max(frame.clientWidth - 16, 200),
        height: HEIGHT,
        tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "UTC"),
        axes: [{ ...axis, values: span > 3 * DAY_S ? "{YYYY}-{MM}-{DD}" : time, space: 90 }, { ...axis, size: 60 }],
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 1)] } },
        series: [
          { label: "Time (UTC)", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" },
          ...series.map(([label], at) => ({
            label,
            stroke: colour(COLOURS[at]),
            width: 2,
            dash: at ? [6, 3] : undefined,
            fill: at ? undefined : `${colour(COLOURS[0])}22`,
          })),
        ],
      };
      plots.push(new uPlot(options, [numbers.times, ...series.map(([, values]) => values)], frame));
    }
    document.documentElement.dataset.drawn = plots.length;
  }

  async function begin() {
    told.textContent = "Loading";
    try {
      numbers = await answered(page.dataset.url);
      told.textContent = "";
      draw();
    } catch (error) {
      told.textContent = error.message;
    }
  }

  dark.addEventListener("change", () => numbers && draw());
  window.addEventListener("resize", () => {
    for (const plot of plots) {
      plot.setSize({ width: Math.max(plot.root.parentElement.clientWidth - 16, 200), height: HEIGHT });
    }
  });
  begin();
})();
