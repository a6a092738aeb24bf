(ns tidegate.values
  "JSON values to Clojure's and back, in Datalevin's spelling, and a total order over them.

  Whole numbers become longs. What is encoded has sets in order, so that an answer is the same at
  every call."
  (:require
   [clojure.edn :as edn]
   [clojure.string :as str]
   [datalevin.datom :as dd])
  (:import
   [java.math BigInteger MathContext]
   [java.nio.charset StandardCharsets]
   [java.time Instant]
   [java.util ArrayList Base64 Collections Comparator Date PriorityQueue UUID]))

(def ^:const most-depth 100)

(defn refuse
  "Throw an error that a caller is shown: its code, the text, and what else is known of it."
  ([code text] (refuse code text nil))
  ([code text more] (throw (ex-info text (merge {:code code} more)))))

(def ^:private tags
  #{"~str" "~i64" "~map" "~set" "~date" "~uuid" "~bytes" "~bigdec" "~bigint" "~edn"})

(declare decode)

(defn- decode-pairs [pairs depth]
  (into {} (map (fn [[k v]] [(decode k depth) (decode v depth)])) pairs))

(defn- decode-tagged [tag value depth]
  (try
    (case tag
      "~str"    (str value)
      "~i64"    (Long/parseLong value)
      "~map"    (decode-pairs value depth)
      "~set"    (into #{} (map #(decode % depth)) value)
      "~date"   (Date/from (Instant/parse value))
      "~uuid"   (UUID/fromString value)
      "~bytes"  (.decode (Base64/getDecoder) ^String value)
      "~bigdec" (BigDecimal. ^String value)
      "~bigint" (BigInteger. ^String value)
      "~edn"    (edn/read-string value))
    (catch clojure.lang.ExceptionInfo e (throw e))
    (catch Exception _
      (refuse :invalid-json-tag (str "The value of the tag " tag " cannot be read.")))))

(defn decode
  "A JSON value as Clojure's. A text that begins with a colon is a keyword."
  ([x] (decode x 0))
  ([x depth]
   (let [depth (inc (long depth))]
     (when (> depth most-depth)
       (refuse :invalid-request (str "A value is nested more than " most-depth " deep.")))
     (cond
       (nil? x) nil
       (string? x) (if (and (str/starts-with? x ":") (> (count x) 1)) (keyword (subs x 1)) x)
       (boolean? x) x
       (instance? Integer x) (long x)
       (instance? Long x) x
       (map? x) (let [[k v] (first x)]
                  (if (and (= 1 (count x)) (contains? tags k))
                    (decode-tagged k v depth)
                    (into {} (map (fn [[k v]] [(decode k depth) (decode v depth)])) x)))
       (sequential? x) (mapv #(decode % depth) x)
       :else x))))

(defn keyword-of
  "A keyword that is written with its colon or without, as a JSON text or already decoded."
  [x field]
  (cond
    (keyword? x) x
    (and (string? x) (re-matches #":?[^\s:]+" x)) (keyword (str/replace-first x ":" ""))
    :else (refuse :invalid-request (str field " must be a keyword.") {:field field})))

;; The order.

(declare compare-values)

(defn- rank ^long [x]
  (cond
    (nil? x) 0
    (boolean? x) 1
    (number? x) 2
    (or (instance? Date x) (instance? Instant x)) 3
    (uuid? x) 4
    (keyword? x) 5
    (symbol? x) 6
    (char? x) 7
    (string? x) 8
    (bytes? x) 9
    (or (sequential? x) (instance? java.util.List x)) 10
    (or (set? x) (instance? java.util.Set x)) 11
    (or (map? x) (instance? java.util.Map x)) 12
    :else 13))

(defn- number-kind ^long [x]
  (cond
    (or (instance? Long x) (instance? Integer x) (instance? Short x) (instance? Byte x)) 0
    (or (instance? BigInteger x) (instance? clojure.lang.BigInt x)) 1
    (decimal? x) 2
    :else 3))

(defn- exact [x]
  (if (or (instance? Double x) (instance? Float x)) (BigDecimal. (double x)) (bigdec x)))

(defn- infinite [x]
  (if (or (instance? Double x) (instance? Float x))
    (let [d (double x)]
      (cond (Double/isNaN d) 2 (Double/isInfinite d) (if (pos? d) 1 -1) :else 0))
    0))

(defn- plain-number
  "A number as it is shown: a ratio is the double that is nearest to it."
  [x]
  (if (ratio? x)
    (.doubleValue (.decimalValue ^clojure.lang.Ratio x MathContext/DECIMAL128))
    x))

(defn- compare-numbers [a b]
  (cond
    (and (instance? Long a) (instance? Long b))
    (Long/compare a b)

    (or (ratio? a) (ratio? b))
    (compare-numbers (plain-number a) (plain-number b))

    :else
    (let [i (long (infinite a)) j (long (infinite b))]
      (if (or (not= i 0) (not= j 0))
        (Long/compare i j)
        (let [c (.compareTo ^BigDecimal (exact a) ^BigDecimal (exact b))]
          (if (zero? c) (Long/compare (number-kind a) (number-kind b)) c))))))

(defn- compare-bytes [^bytes a ^bytes b]
  (java.util.Arrays/compareUnsigned a b))

(defn- compare-texts [^String a ^String b]
  (if (= a b) 0 (compare-bytes (.getBytes a "UTF-8") (.getBytes b "UTF-8"))))

(defn- compare-all [a b]
  (loop [a (seq a) b (seq b)]
    (cond
      (and (nil? a) (nil? b)) 0
      (nil? a) -1
      (nil? b) 1
      :else (let [c (long (compare-values (first a) (first b)))]
              (if (zero? c) (recur (next a) (next b)) c)))))

(defn- sorted [xs]
  (let [listed (ArrayList. ^java.util.Collection xs)]
    (Collections/sort listed ^Comparator compare-values)
    listed))

(defn compare-values
  "Negative, zero or positive: kinds in a fixed order, and values of one kind as they are."
  [a b]
  (let [r (rank a) s (rank b)]
    (if (not= r s)
      (Long/compare r s)
      (int
       (case r
         0 0
         1 (compare a b)
         2 (compare-numbers a b)
         3 (compare (inst-ms a) (inst-ms b))
         4 (compare-texts (str a) (str b))
         (5 6 7 8) (compare-texts (str a) (str b))
         9 (compare-bytes a b)
         10 (compare-all a b)
         11 (compare-all (sorted a) (sorted b))
         12 (compare-all (sorted (map vec a)) (sorted (map vec b)))
         (compare-texts (str a) (str b)))))))

(defn least
  "The `most` least of the values, in order."
  [most xs]
  (if (<= (count xs) (long most))
    (vec (sorted xs))
    (let [backward (reify Comparator (compare [_ a b] (int (compare-values b a))))
          heap     (PriorityQueue. (int (inc (long most))) ^Comparator backward)]
      (when (pos? (long most))
        (doseq [x xs]
          (if (< (.size heap) (long most))
            (.add heap x)
            (when (neg? (long (compare-values x (.peek heap))))
              (.poll heap)
              (.add heap x)))))
      (vec (sorted heap)))))

;; Back to JSON.

(declare encode)

(def ^:private reserved (conj tags "~handle" "~pull"))

(defn- encode-map [m]
  (let [entries (mapv (fn [[k v]] [(encode k) (encode v)]) m)]
    (if (every? #(and (string? (first %)) (not (reserved (first %)))) entries)
      (into (sorted-map) entries)
      {"~map" (mapv (fn [[k v]] [(encode k) (encode v)])
                    (sort-by first compare-values (map vec m)))})))

(defn- has-surrogates? [^String x]
  (let [size (.length x)]
    (loop [n 0]
      (cond
        (= n size) false
        (Character/isSurrogate (.charAt x n)) true
        :else (recur (inc n))))))

(defn whole-characters
  "A text in which half of a surrogate pair, which `subs` can leave, is the replacement character:
  no encoding of texts has a half."
  ^String [^String x]
  (if (or (not (has-surrogates? x)) (.canEncode (.newEncoder StandardCharsets/UTF_8) x))
    x
    (str/replace x #"[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
                 "\ufffd")))

(defn encode
  "A value as JSON's, in Datalevin's spelling."
  [x]
  (cond
    (nil? x) nil
    (string? x) (whole-characters x)
    (keyword? x) (whole-characters (str x))
    (boolean? x) x
    (instance? Long x) (if (<= -9007199254740991 (long x) 9007199254740991) x {"~i64" (str x)})
    (or (instance? Integer x) (instance? Short x) (instance? Byte x)) (long x)
    (or (instance? Double x) (instance? Float x) (ratio? x))
    (let [d (double (plain-number x))]
      (if (or (Double/isNaN d) (Double/isInfinite d)) {"~edn" (pr-str d)} d))
    (symbol? x) {"~edn" (pr-str x)}
    (char? x) {"~edn" (pr-str x)}
    (or (instance? BigInteger x) (instance? clojure.lang.BigInt x)) {"~bigint" (str x)}
    (decimal? x) {"~bigdec" (str x)}
    (instance? Date x) {"~date" (str (.toInstant ^Date x))}
    (instance? Instant x) {"~date" (str x)}
    (uuid? x) {"~uuid" (str x)}
    (bytes? x) {"~bytes" (.encodeToString (Base64/getEncoder) ^bytes x)}
    (dd/datom? x) {"e" (encode (dd/datom-e x)) "a" (encode (dd/datom-a x))
                   "v" (encode (dd/datom-v x)) "tx" (encode (dd/datom-tx x))
                   "added" (boolean (dd/datom-added x))}
    (map? x) (encode-map x)
    (instance? java.util.Map x) (encode-map (into {} x))
    (or (set? x) (instance? java.util.Set x)) {"~set" (mapv encode (sorted x))}
    (or (sequential? x) (instance? java.util.Collection x)) (mapv encode x)
    :else (refuse :json-unsupported-type
                  (str "A value of the class " (.getName (class x)) " cannot be shown as JSON."))))
