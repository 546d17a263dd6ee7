// A plot over time in the colours of the page. Series: name, kind (line, bar), color (a CSS variable), stack, area, data.
import { echarts } from "nicegui-echart";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export default {
  template: `<div class="ld-chart" role="img" :aria-label="label"></div>`,
  props: { label: String, unit: String, series: Array, start: Number, end: Number, whole: Boolean },
  mounted() {
    this.chart = echarts.init(this.$el, null, { renderer: "canvas" });
    this.sizes = new ResizeObserver(() => this.chart.resize());
    this.sizes.observe(this.$el);
    this.redraw = () => this.draw(true);
    window.addEventListener("lading-theme", this.redraw);
    this.draw(true);
  },
  beforeUnmount() {
    window.removeEventListener("lading-theme", this.redraw);
    this.sizes.disconnect();
    this.chart.dispose();
  },
  watch: {
    series() {
      this.draw(false);
    },
    end() {
      this.draw(false);
    },
  },
  methods: {
    draw(fromScratch) {
      const names = this.series.map((series) => series.name).join("|");
      this.chart.setOption(this.options(), { notMerge: fromScratch || names !== this.names });
      this.names = names;
    },
    amount(value) {
      if (value === null || value === undefined) return "–";
      const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 1 ? 1 : 3;
      return value.toLocaleString("en-US", { maximumFractionDigits: digits });
    },
    short(value) {
      for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
        if (Math.abs(value) >= size) {
          const by = letter === "k" ? 1e3 : size;
          return (value / by).toLocaleString("en-US", { maximumFractionDigits: 1 }) + " " + letter;
        }
      }
      return value.toLocaleString("en-US", { maximumFractionDigits: 3 });
    },
    options() {
      const muted = css("--ld-muted");
      const line = css("--ld-line");
      const text = { color: muted, fontSize: 11, fontFamily: css("--ld-font") };
      return {
        animation: false,
        grid: { left: 4, right: 22, top: this.series.length > 1 ? 30 : 12, bottom: 2, containLabel: true },
        legend: this.series.length > 1
          ? { top: 0, left: 0, itemWidth: 10, itemHeight: 10, itemGap: 10, icon: "roundRect", textStyle: text,
              type: "scroll", pageIconColor: muted, pageTextStyle: text }
          : { show: false },
        tooltip: {
          trigger: "axis",
          confine: true,
          backgroundColor: css("--ld-panel"),
          borderColor: line,
          textStyle: { color: css("--ld-ink"), fontSize: 12, fontFamily: css("--ld-font") },
          axisPointer: { lineStyle: { color: muted } },
          formatter: (points) => {
            const box = document.createElement("div");
            const head = document.createElement("div");
            head.textContent = lading.exact(points[0].value[0]);
            box.append(head);
            for (const point of points) {
              if (point.value[1] === null) continue;
              const row = document.createElement("div");
              row.textContent = `${point.seriesName}: ${this.amount(point.value[1])} ${this.unit}`;
              box.append(row);
            }
            return box;
          },
        },
        xAxis: {
          type: "time",
          min: this.start,
          max: this.end,
          axisLine: { lineStyle: { color: line } },
          axisTick: { show: false },
          // Few enough to stand at equal distances: of many, those that overlap are left out here and there.
          splitNumber: 6,
          axisLabel: { ...text, hideOverlap: true, formatter: (at) => lading.clock(at) },
          splitLine: { show: false },
        },
        yAxis: {
          type: "value",
          min: 0,
          splitNumber: 3,
          minInterval: this.whole || !["s", "rows/s"].includes(this.unit) ? 1 : 0,
          axisLabel: { ...text, formatter: (value) => this.short(value) },
          splitLine: { lineStyle: { color: line } },
        },
        series: this.series.map((series) => {
          const color = css(series.color);
          return {
            name: series.name,
            type: series.kind,
            stack: series.stack || null,
            data: series.data,
            color,
            itemStyle: { color },
            lineStyle: { width: 1.75, color },
            areaStyle: series.area ? { color, opacity: 0.12 } : undefined,
            showSymbol: Boolean(series.dots),
            symbol: "circle",
            symbolSize: 4,
            connectNulls: true,
            barMaxWidth: 10,
            barMinWidth: 2,
            emphasis: { disabled: true },
          };
        }),
      };
    },
  },
};
