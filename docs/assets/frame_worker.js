// A page that is read from a disk may start no worker: its search runs in a frame without a face instead, which is handed
// messages as a worker is.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.window = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== this.window) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      const inside = `
        postMessage = parent.postMessage.bind(parent);
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, fail) => {
          const script = document.createElement("script");
          script.src = url; script.onload = done; script.onerror = fail;
          document.body.append(script);
        })), Promise.resolve());`;
      const end = "</scr" + "ipt>";
      this.window.document.open();
      this.window.document.write(
        `<!doctype html><html><body><script>${inside}${end}<script src="${url}">${end}</body></html>`);
      this.window.document.close();
      this.ready = new Promise((done) => { frame.onload = done; });
    }
    postMessage(data) {
      this.ready.then(() => this.window.dispatchEvent(new MessageEvent("message", { data, source: parent })));
    }
    terminate() {}
  };
}
