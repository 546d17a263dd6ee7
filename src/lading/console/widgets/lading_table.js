// A table that changes in place. Cells are texts, or records: text, note, href, tone, title, at, mono, pulse, action,
// since (when it was, below the text), whole (it is not broken into lines), pick (a box to choose the row by).
// A text that stands for a longer one, its title, opens with a click or a key.
// Below 640 pixels each row becomes a card by CSS; the roles keep it a table for screen readers.
export default {
  template: `
    <div class="ld-table-box">
      <table class="ld-table" role="table" :class="{'ld-cards': cards, 'ld-early': early}">
        <caption :class="{'ld-sr': quiet}">{{ caption }}</caption>
        <thead v-show="rows.length" role="rowgroup">
          <tr role="row">
            <th v-for="column in columns" :key="column.name" scope="col" role="columnheader"
                :class="side(column)" :aria-sort="sorted(column)">
              <button v-if="column.sortable" type="button" class="ld-sort" @click="$emit('sort', column.name)">
                {{ column.label }}<span aria-hidden="true" class="ld-arrow">{{ arrow(column) }}</span>
              </button>
              <span v-else>{{ column.label }}</span>
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          <tr v-for="row in rows" :key="row.key" role="row">
            <component v-for="(column, number) in columns" :key="column.name" :is="number ? 'td' : 'th'"
                :scope="number ? null : 'row'" :role="number ? 'cell' : 'rowheader'" :data-label="column.label"
                :class="[side(column), cell(row, column).mono ? 'ld-mono' : '', cell(row, column).wide ? 'ld-wide' : '',
                         cell(row, column).whole ? 'ld-whole' : '',
                         cell(row, column).text || cell(row, column).at || cell(row, column).action ? '' : 'ld-void']">
              <input v-if="cell(row, column).pick" type="checkbox" class="ld-pick" :checked="cell(row, column).pick.on"
                     :aria-label="cell(row, column).pick.label"
                     @change="$emit('pick', { key: row.key, on: $event.target.checked })">
              <span class="ld-cell" :title="title(cell(row, column))">
                <a v-if="cell(row, column).href" :href="cell(row, column).href">{{ cell(row, column).text }}</a>
                <span v-else-if="cell(row, column).badge" class="ld-badge"
                      :data-tone="cell(row, column).tone">{{ cell(row, column).text }}</span>
                <time v-else-if="cell(row, column).at" :datetime="iso(cell(row, column).at)">{{
                  ago(cell(row, column).at) }}</time>
                <button v-else-if="cell(row, column).action" type="button" class="ld-small"
                        :aria-label="cell(row, column).label || null"
                        @click="$emit('act', cell(row, column).action)">{{ cell(row, column).text }}</button>
                <details v-else-if="hasMore(cell(row, column))" class="ld-more">
                  <summary>{{ cell(row, column).text }}</summary>{{ cell(row, column).title }}
                </details>
                <span v-else :data-tone="cell(row, column).tone || null">{{ cell(row, column).text }}</span>
                <svg v-if="cell(row, column).pulse && cell(row, column).pulse.length" class="ld-pulse"
                     viewBox="0 0 60 16" aria-hidden="true" preserveAspectRatio="none">
                  <rect v-for="(bar, at) in bars(cell(row, column).pulse)" :key="at" v-bind="bar"></rect>
                </svg>
                <time v-if="cell(row, column).since" class="ld-note" :datetime="iso(cell(row, column).since)"
                      :title="exact(cell(row, column).since)">{{ ago(cell(row, column).since) }}</time>
                <span v-if="cell(row, column).note" class="ld-note"
                      :data-tone="cell(row, column).noteTone || null">{{ cell(row, column).note }}</span>
              </span>
            </component>
          </tr>
        </tbody>
      </table>
      <p v-if="!rows.length" class="ld-none">{{ empty }}</p>
    </div>`,
  props: {
    caption: String,
    columns: Array,
    rows: Array,
    empty: String,
    sort: String,
    descending: Boolean,
    cards: Boolean,
    early: Boolean,
    quiet: Boolean,
  },
  data() {
    return { now: lading.now() };
  },
  mounted() {
    this.stop = lading.onTick((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
  methods: {
    cell(row, column) {
      const found = row[column.name];
      return found !== null && typeof found === "object" ? found : { text: found };
    },
    side(column) {
      return column.number ? "ld-number" : "";
    },
    sorted(column) {
      if (!column.sortable) return null;
      return column.name === this.sort ? (this.descending ? "descending" : "ascending") : "none";
    },
    arrow(column) {
      return column.name === this.sort ? (this.descending ? " ↓" : " ↑") : "";
    },
    title(cell) {
      return cell.at ? lading.exact(cell.at) : cell.title || null;
    },
    hasMore(cell) {
      return Boolean(cell.title) && cell.title !== cell.text;
    },
    exact(at) {
      return lading.exact(at);
    },
    iso(at) {
      return new Date(at).toISOString();
    },
    ago(at) {
      return lading.ago(at, this.now);
    },
    bars(pulse) {
      const most = Math.max(...pulse, 1);
      const width = 60 / pulse.length;
      return pulse.map((value, at) => {
        const height = value ? Math.max(1, (value / most) * 16) : 0;
        return { x: at * width, y: 16 - height, width: Math.max(0.5, width - 1), height };
      });
    },
  },
};
