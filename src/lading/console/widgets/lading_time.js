// A moment: how long ago it was, exact on hover.
export default {
  template: `<time class="ld-time" :datetime="iso" :title="exact">{{ text }}</time>`,
  props: { at: Number, none: String },
  data() {
    return { now: lading.now() };
  },
  computed: {
    iso() {
      return this.at ? new Date(this.at).toISOString() : null;
    },
    exact() {
      return this.at ? lading.exact(this.at) : null;
    },
    text() {
      return this.at ? lading.ago(this.at, this.now) : this.none;
    },
  },
  mounted() {
    this.stop = lading.onTick((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
};
