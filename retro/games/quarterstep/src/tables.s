; Tables made from levels.txt, tiles.txt and font.txt, and the header of the file.

.export screens, attributes, palettes, bricks, tile_cells, texts, text_starts

.segment "HEADER"                       ; NES 2.0: leaves nothing for an emulator to guess
    .byte "NES", $1A
    .byte 1, 1                          ; 16 KiB of program, 8 KiB of pictures
    .byte %00000001, %00001000          ; mapper 0, vertical mirroring; NES 2.0
    .res 8, 0                           ; no memory on the cartridge, NTSC

.segment "SCREENS"                      ; 256 bytes a screen, see Screen.page in levels.py
screens:        .incbin "screens.bin"

.segment "RODATA"
attributes:     .incbin "attributes.bin"        ; 64 bytes a screen
palettes:       .incbin "palettes.bin"
bricks:         .incbin "bricks.bin"            ; the first palette of each screen
tile_cells:     .incbin "tiles.bin"             ; code of tile -> its first of four cells, 0 for nothing
text_starts:    .incbin "starts.bin"            ; screen -> where in texts its own begin
texts:          .incbin "texts.bin"             ; address high, low, length, letters; 0 ends a screen's

.segment "CHR"
    .incbin "patterns.bin"
