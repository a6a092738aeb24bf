"""What the sample shop sells and what is said of it, in the languages of its customers.

Pure data: a tree of categories with one noun for each kind of product, translations, and the
sentences that orders, returns and reviews are made of.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of product: a leaf of the category tree. Prices are in cents."""

    branch: str
    twig: str
    noun: str
    price_low: int
    price_high: int
    weight_g: int
    names: dict[str, str]


LANGUAGES = ("de", "fr", "el", "uk", "ar", "he", "hi", "zh", "ja", "ko")


def _kind(
    branch: str, twig: str, noun: str, low: int, high: int, weight_g: int, *names: str
) -> Kind:
    return Kind(branch, twig, noun, low, high, weight_g, dict(zip(LANGUAGES, names, strict=True)))


KINDS: tuple[Kind, ...] = (
    _kind("Home", "Kitchen", "Teapot", 1800, 9500, 900,
          "Teekanne", "Théière", "Τσαγιέρα", "Чайник", "إبريق شاي", "קומקום תה", "चायदानी",
          "茶壶", "急須", "찻주전자"),
    _kind("Home", "Kitchen", "Pan", 2200, 12900, 1600,
          "Pfanne", "Poêle", "Τηγάνι", "Сковорода", "مقلاة", "מחבת", "कड़ाही",
          "平底锅", "フライパン", "프라이팬"),
    _kind("Home", "Kitchen", "Knife", 900, 18900, 240,
          "Messer", "Couteau", "Μαχαίρι", "Ніж", "سكين", "סכין", "चाकू",
          "菜刀", "包丁", "식칼"),
    _kind("Home", "Lighting", "Lamp", 2900, 24900, 2100,
          "Lampe", "Lampe", "Λάμπα", "Лампа", "مصباح", "מנורה", "दीपक",
          "台灯", "ランプ", "램프"),
    _kind("Home", "Lighting", "Lantern", 1500, 7900, 800,
          "Laterne", "Lanterne", "Φανάρι", "Ліхтар", "فانوس", "פנס", "लालटेन",
          "灯笼", "提灯", "등불"),
    _kind("Home", "Furniture", "Chair", 4900, 39900, 6200,
          "Stuhl", "Chaise", "Καρέκλα", "Стілець", "كرسي", "כיסא", "कुर्सी",
          "椅子", "椅子", "의자"),
    _kind("Home", "Furniture", "Table", 9900, 89900, 18500,
          "Tisch", "Table", "Τραπέζι", "Стіл", "طاولة", "שולחן", "मेज़",
          "桌子", "机", "탁자"),
    _kind("Home", "Furniture", "Bookshelf", 7900, 59900, 22000,
          "Bücherregal", "Bibliothèque", "Βιβλιοθήκη", "Полиця", "رف كتب", "כוננית", "अलमारी",
          "书架", "本棚", "책장"),
    _kind("Garden", "Tools", "Spade", 1900, 6900, 1900,
          "Spaten", "Bêche", "Φτυάρι", "Лопата", "مجرفة", "את חפירה", "फावड़ा",
          "铁锹", "シャベル", "삽"),
    _kind("Garden", "Tools", "Watering can", 1200, 5900, 700,
          "Gießkanne", "Arrosoir", "Ποτιστήρι", "Лійка", "إبريق سقي", "משפך", "सींचनी",
          "浇水壶", "じょうろ", "물뿌리개"),
    _kind("Garden", "Plants", "Olive tree", 2900, 29900, 9000,
          "Olivenbaum", "Olivier", "Ελιά", "Олива", "شجرة زيتون", "עץ זית", "जैतून",
          "橄榄树", "オリーブの木", "올리브나무"),
    _kind("Garden", "Plants", "Tulip bulbs", 400, 2900, 350,
          "Tulpenzwiebeln", "Bulbes de tulipe", "Τουλίπες", "Тюльпани", "أبصال التوليب",
          "פקעות צבעוני", "ट्यूलिप", "郁金香", "チューリップ", "튤립"),
    _kind("Paper", "Books", "Atlas", 1900, 12900, 1800,
          "Atlas", "Atlas", "Άτλας", "Атлас", "أطلس", "אטלס", "मानचित्र",
          "地图集", "地図帳", "지도책"),
    _kind("Paper", "Books", "Cookbook", 1400, 5900, 950,
          "Kochbuch", "Livre de cuisine", "Βιβλίο μαγειρικής", "Кулінарна книга", "كتاب طبخ",
          "ספר בישול", "पाक पुस्तक", "食谱", "料理本", "요리책"),
    _kind("Paper", "Desk", "Notebook", 300, 2900, 220,
          "Notizbuch", "Carnet", "Τετράδιο", "Зошит", "دفتر", "מחברת", "कॉपी",
          "笔记本", "ノート", "공책"),
    _kind("Paper", "Desk", "Fountain pen", 1900, 49900, 40,
          "Füllfeder", "Stylo plume", "Πένα", "Ручка", "قلم حبر", "עט נובע", "फाउंटेन पेन",
          "钢笔", "万年筆", "만년필"),
    _kind("Clothes", "Wool", "Scarf", 1900, 14900, 180,
          "Schal", "Écharpe", "Κασκόλ", "Шарф", "وشاح", "צעיף", "दुपट्टा",
          "围巾", "マフラー", "목도리"),
    _kind("Clothes", "Wool", "Sweater", 3900, 24900, 520,
          "Pullover", "Pull", "Πουλόβερ", "Светр", "سترة صوف", "סוודר", "स्वेटर",
          "毛衣", "セーター", "스웨터"),
    _kind("Clothes", "Rain", "Umbrella", 1500, 8900, 450,
          "Regenschirm", "Parapluie", "Ομπρέλα", "Парасолька", "مظلة", "מטרייה", "छाता",
          "雨伞", "傘", "우산"),
    _kind("Clothes", "Rain", "Boots", 4900, 21900, 1500,
          "Stiefel", "Bottes", "Μπότες", "Чоботи", "حذاء طويل", "מגפיים", "जूते",
          "靴子", "長靴", "장화"),
    _kind("Music", "Strings", "Ukulele", 4900, 69900, 600,
          "Ukulele", "Ukulélé", "Γιουκαλίλι", "Укулеле", "أوكوليلي", "יוקללי", "यूकुलेले",
          "尤克里里", "ウクレレ", "우쿨렐레"),
    _kind("Music", "Drums", "Tambourine", 1900, 9900, 500,
          "Tamburin", "Tambourin", "Ντέφι", "Бубон", "دف", "תוף מרים", "डफली",
          "铃鼓", "タンバリン", "탬버린"),
    _kind("Play", "Games", "Chess set", 2900, 49900, 2400,
          "Schachspiel", "Jeu d'échecs", "Σκάκι", "Шахи", "شطرنج", "שחמט", "शतरंज",
          "国际象棋", "チェス", "체스"),
    _kind("Play", "Outdoors", "Kite", 900, 7900, 300,
          "Drachen", "Cerf-volant", "Χαρταετός", "Повітряний змій", "طائرة ورقية", "עפיפון",
          "पतंग", "风筝", "凧", "연"),
)  # fmt: skip

MATERIALS = ("Oak", "Birch", "Copper", "Linen", "Cork", "Brass", "Slate", "Bamboo", "Felt", "Glass")
MAKES = (
    "No. 1", "No. 4", "No. 7", "Mini", "Grande", "Classic", "Nordic", "Atelier", "Café", "Señora",
    "Øresund", "Zürich",
)  # fmt: skip
COLORS = ("red", "blue", "green", "natural", "black", "white")
CARRIERS = ("Swift Post", "Harbor Freight Line", "Velo Courier", "Northern Parcel")
RETURN_REASONS = ("too small", "too large", "broken on arrival", "other color expected", None)
ORDER_NOTES = (
    "Please ring twice", "Geschenk 🎁", "Laisser chez la voisine", "Να αφεθεί στην πόρτα",
    "Подзвоніть заздалегідь", "من فضلك اتصل قبل الوصول", "נא להשאיר ליד הדלת",
    "कृपया फ़ोन करें", "请放在门口", "置き配でお願いします", "문 앞에 놓아 주세요", "No rush 🐢",
)  # fmt: skip

# By language: (titles for the content, titles for the unhappy, bodies).
REVIEWS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "en": (("Love it ❤️", "Just right", "Worth every cent"), ("Not for me", "Broke in a week"),
           ("It looks better than in the pictures.", "Second one I buy; the first still holds.")),
    "de": (("Wunderschön", "Sehr zufrieden 👍"), ("Leider enttäuscht", "Größe stimmt nicht"),
           ("Schöne Verarbeitung, schnelle Lieferung.", "Für den Preis völlig in Ordnung.")),
    "fr": (("Très beau", "Parfait ✨"), ("Déçu", "Arrivé abîmé"),
           ("Fidèle à la description, à offrir les yeux fermés.", "La couleur est superbe.")),
    "es": (("¡Precioso!", "Muy útil"), ("No lo compraría otra vez",),
           ("Llegó antes de lo previsto.", "El tamaño es el adecuado.")),
    "el": (("Υπέροχο", "Πολύ καλό 😊"), ("Δεν μου άρεσε",),
           ("Ήρθε γρήγορα και καλά συσκευασμένο.",)),
    "uk": (("Чудова річ", "Раджу всім 💛"), ("Не сподобалось",),
           ("Якість краща, ніж я чекала.", "Доставили за три дні.")),
    "ar": (("رائع جدا", "أنصح به"), ("لم يعجبني",), ("وصل بسرعة والجودة ممتازة.",)),
    "he": (("מקסים", "ממליצה בחום"), ("מאכזב",), ("הגיע מהר וארוז היטב.",)),
    "hi": (("बहुत सुंदर", "पैसा वसूल 🙏"), ("ठीक नहीं लगा",), ("समय पर मिला, रंग अच्छा है।",)),
    "zh": (("非常好", "很喜欢 👍"), ("有点失望",), ("质量不错，物流很快。", "和图片一样。")),
    "ja": (("とても良い", "気に入りました 🌸"), ("少し残念",), ("丁寧な梱包で届きました。",)),
    "ko": (("정말 좋아요", "추천합니다"), ("아쉬워요",), ("포장이 꼼꼼하고 배송이 빨라요.",)),
}  # fmt: skip

ROLES = ("director", "manager", "buyer", "picker", "packer", "driver", "support", "bookkeeper")
