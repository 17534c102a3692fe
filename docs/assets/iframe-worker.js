// Browsers start no worker for a page that was opened as a file: there the search's runs in a hidden frame, by the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      this.inside = document.body.appendChild(frame).contentWindow
      this.inside.document.open()
      this.inside.document.write("<body>")
      this.inside.document.close()
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = Object.assign(this.inside.document.createElement("script"), { src: url })
      this.ready = new Promise((loaded) => (script.onload = loaded))
      this.inside.document.body.append(script)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
